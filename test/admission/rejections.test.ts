// needs: nothing
import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { plainJson } from '../../lib/base/text/plain-json.js';
import { type AcquireOptions, AdmissionError, type ManagerOptions, NumalignError } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { guaranteed, simulate } from '../support/simulated.js';

const MACHINE = 'package:2 numa:1 core:4 pu:2';

async function rejected(request: AcquireOptions, options: ManagerOptions = {}): Promise<AdmissionError> {
  const manager = await simulate(MACHINE, { reservedSystemCPUs: '0-1', ...options });
  await manager.acquire({ cpu: 4, name: 'database' });
  const error = await errorOf(() => manager.acquire(request));
  expect(error).toBeInstanceOf(AdmissionError);
  return error as AdmissionError;
}

describe('a rejection', () => {
  it('has the details of the error as named members', async () => {
    const { code, message, details, rejection } = await rejected({ cpu: 11 });
    const { facts, reason, holders, reserved, explanation } = rejection;
    expect(rejection).toMatchObject({ admitted: false, code, message, reserved: '0-1' });
    expect({ ...facts, reason, holders, reserved, explanation }).toEqual(details);
    expect(holders.map(({ name }) => name)).toEqual(['database']);
  });

  const whole = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
  it.each<[AcquireOptions, ManagerOptions, string]>([
    [{ cpu: 11 }, {}, 'ERR_INSUFFICIENT_CPUS'],
    [{ cpu: 12 }, { reservedSystemCPUs: '' }, 'ERR_INSUFFICIENT_CPUS'],
    [{ cpu: 3 }, whole, 'ERR_SMT_ALIGNMENT'],
    [{ cpu: 9, policy: 'single-numa-node' }, {}, 'ERR_TOPOLOGY_AFFINITY'],
  ])('of %o with %o is a shortage: %s', async (request, options, code) => {
    const error = await rejected(request, options);
    expect([error.code, error.isShortage]).toEqual([code, true]);
  });

  it.each<[number, ManagerOptions]>([
    [9, { policy: 'single-numa-node' }],
    [11, {}],
    [11, { policy: 'restricted', placement: 'joint' }],
    [11, { scope: 'pod' }],
    [3, { ...whole, policy: 'none' }],
  ])('of %i CPUs with %o has the hints of its plan', async (cpu, options) => {
    const manager = await simulate(MACHINE, options);
    await manager.acquire({ cpu: 6 });
    const pod = { containers: [guaranteed('small', { cpu: 2 }), guaranteed('main', { cpu })] };
    const error = (await errorOf(() => manager.admit(pod))) as AdmissionError;
    const { hints } = manager.plan(pod);
    expect(error.rejection.offers).toEqual(hints);
    expect(hints.every(({ offered }) => offered.length > 0)).toBe(true);
  });

  it('asks callbacks once', async () => {
    const manager = await simulate(MACHINE, { policy: 'single-numa-node' });
    let calls = 0;
    const preferredAllocation = () => {
      calls++;
      return null;
    };
    const devices = [0, 1].map((node) => ({ id: `nic${node}`, numaNodes: [node] }));
    manager.registerDevices('example.com/nic', devices, { preferredAllocation });
    const pod = { containers: [guaranteed('main', { cpu: 12, 'example.com/nic': 1 })] };
    manager.plan(pod);
    const planned = calls;
    await errorOf(() => manager.admit(pod));
    expect(planned).toBeGreaterThan(0);
    expect(calls).toBe(2 * planned);
  });

  it('by a callback that cannot choose is no shortage', async () => {
    const manager = await simulate(MACHINE);
    const cause = new Error('broken');
    manager.addHintProvider({
      name: 'broken',
      hints: () => ({}),
      allocate: () => {
        throw cause;
      },
      release: () => {},
    });
    const error = await errorOf(() => manager.admit({ containers: [guaranteed('main', { cpu: 1 })] }));
    expect(error).toBeInstanceOf(AdmissionError);
    expect(error).toMatchObject({ code: 'ERR_HINT_PROVIDER', isShortage: false, cause });
  });

  it('is not the result of a provider without hints', async () => {
    const manager = await simulate(MACHINE, { policy: 'restricted' });
    manager.addHintProvider({
      name: 'broken',
      hints: () => {
        throw new Error('broken');
      },
      allocate: () => {},
      release: () => {},
    });
    const error = await errorOf(() => manager.admit({ containers: [guaranteed('main', { cpu: 1 })] }));
    expect(error).not.toBeInstanceOf(AdmissionError);
    expect(error).toMatchObject({ code: 'ERR_HINT_PROVIDER' });
  });

  it('is inspected and cloned like any error', async () => {
    const error = await rejected({ cpu: 11 });
    expect(inspect(error)).toMatch(/^AdmissionError: 11 exclusive CPUs requested/);
    expect(structuredClone(error).message).toBe(error.message);
  });
});

describe('as JSON', () => {
  it('an error has name, code, message and details', async () => {
    const error = await rejected({ cpu: 11, policy: 'restricted' });
    const { name, code, message, details } = JSON.parse(JSON.stringify(error));
    expect({ name, code, message }).toEqual({
      name: 'AdmissionError',
      code: error.code,
      message: error.message,
    });
    expect(details).toMatchObject({ reason: error.rejection.reason, explanation: { container: 'main' } });
  });

  it('an error of the addon has the same', async () => {
    const error = await errorOf(() => simulate('none:0'));
    expect(error.constructor).toBe(NumalignError);
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ name: 'NumalignError', code: error.code });
  });

  const inItself: Record<string, unknown> = { id: 1 };
  inItself.again = { inItself };
  const shared = { id: 2 };
  it.each([
    ['a bigint is its digits', { value: 2n ** 64n }, { value: '18446744073709551616' }],
    ['an object that is inside of itself ends there', inItself, { id: 1, again: { inItself: '[Circular]' } }],
    ['an object that is there twice is there twice', [shared, shared], [shared, shared]],
    ['functions are left out', { id: 1, call: () => 1 }, { id: 1 }],
    ['what cannot be in a list is null there', [() => 1, 2], [null, 2]],
    [
      'an error is name, code and message',
      new NumalignError('ERR_MANAGER_CLOSED', 'no'),
      {
        name: 'NumalignError',
        code: 'ERR_MANAGER_CLOSED',
        message: 'no',
        details: {},
      },
    ],
    [
      'an error of another kind too',
      { cause: new TypeError('no') },
      { cause: { name: 'TypeError', message: 'no' } },
    ],
    ['maps and sets are lists', { map: new Map([[1, 2]]), set: new Set([3]) }, { map: [[1, 2]], set: [3] }],
    ['words are a list', new Uint32Array([1, 2]), [1, 2]],
    [
      'what throws is left out',
      {
        id: 1,
        inside: {
          get broken() {
            throw new Error('no');
          },
        },
      },
      { id: 1 },
    ],
  ])('%s', (_, value, plain) => {
    expect(JSON.parse(JSON.stringify(plainJson(value)))).toEqual(plain);
  });
});
