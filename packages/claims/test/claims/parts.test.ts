// needs: nothing
// What of a claim is granted together, and the request for it.
import fc from 'fast-check';
import { NodeSet } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it } from 'vitest';
import { type ClaimParameters, parametersOf } from '../../lib/claims/parameters.js';
import {
  type DeviceResult,
  type PlacementInEffect,
  partsOf,
  requestFor,
  UNIT,
} from '../../lib/claims/parts.js';
import { deviceNamed } from '../../lib/devices/devices.js';

const topology = await discover({ synthetic: 'numa:2(memory=8GiB) l3:1 core:4 pu:2' });

const result = (
  request: string,
  device: string,
  amounts: Readonly<Record<string, bigint>> = {},
  asked?: bigint,
): DeviceResult => ({
  ...{ request, device: deviceNamed(topology, device)!, asked },
  amounts: new Map(Object.entries(amounts)),
});
const milli = (count: number) => (BigInt(count) * UNIT) / 1000n;
const requestOf = (one: DeviceResult, parameters: ClaimParameters = {}, inEffect: PlacementInEffect = {}) =>
  requestFor(partsOf([one])[0]!, parameters, topology, inEffect);

describe('the parts of a claim', () => {
  it('are its shared devices one by one, and all cores or CPUs of a request together', () => {
    const parts = partsOf([
      result('a', 'core-0'),
      result('b', 'node-1', { cpu: 2n * UNIT, memory: 4096n * UNIT, hugepages2Mi: 0n }),
      result('a', 'core-2'),
      result('c', 'memory-0', { memory: 8192n * UNIT }),
    ]);
    expect(
      parts.map(({ request, within, isExact, memory, cpus }) => [
        request,
        `${within}`,
        isExact,
        memory,
        cpus / UNIT,
      ]),
    ).toEqual([
      ['b', '8-15', false, { memory: 4096 }, 2n],
      ['c', '0-7', false, { memory: 8192 }, 0n],
      ['a', '0-3', true, {}, 4n],
    ]);
  });

  it('ask for just their CPUs, or for CPUs of their NUMA node', () => {
    expect(requestOf(result('a', 'cpu-3'))).toEqual({
      ...{ limits: { cpu: 1 }, exclusive: 1 },
      options: { policy: 'none', owner: 'persistent', within: '3' },
    });
    const parameters: ClaimParameters = { policy: 'restricted', coreKind: 'any' };
    expect(requestOf(result('a', 'node-1', { cpu: 2n * UNIT }), parameters)).toEqual({
      ...{ limits: { cpu: 2 }, exclusive: 2 },
      options: { policy: 'restricted', coreKind: 'any', owner: 'persistent', within: '8-15' },
    });
  });

  it('never leave the NUMA node of their device when they move', () => {
    const terms = { maxPerHour: 2, notice: '1s' };
    const ofNode = result('a', 'node-0', { cpu: UNIT });
    expect(requestOf(ofNode, { movable: terms }).options.movable).toEqual({
      ...terms,
      exclude: NodeSet.of(1),
    });
    expect(requestOf(ofNode, { movable: true }).options.movable).toEqual({ exclude: NodeSet.of(1) });
    expect(requestOf(ofNode, { movable: false }).options).not.toHaveProperty('movable');
    expect(() => requestOf(result('a', 'l3-1', { cpu: UNIT }), { movable: true })).toThrow(
      'movable must be left out for devices l3: a move may lead to another one',
    );
  });

  it('have, if they are mixed, what is asked for, and never more whole CPUs than a scheduler counts', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1000, max: 8000 }), fc.constantFrom(1, 2), (asked, step) => {
        const counted = Math.ceil(asked / 1000 / step) * step;
        const one = result('a', 'node-0', { cpu: BigInt(counted) * UNIT }, milli(asked));
        const { limits, exclusive, options } = requestOf(one, { mixed: true });
        expect([limits.cpu, exclusive, options.mixed]).toEqual([
          asked / 1000,
          Math.floor(asked / 1000),
          true,
        ]);
        // What it has of the shared pool is in a CPU that the scheduler counts.
        expect(Math.ceil(limits.cpu!)).toBeLessThanOrEqual(counted);
        expect(requestOf(one, {}).limits).toEqual({ cpu: counted });
      }),
    );
    expect(() => requestOf(result('a', 'node-0', { cpu: UNIT }, milli(999)), { mixed: true })).toThrow(
      /999m/,
    );
  });

  const WHOLE = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };

  it.each<[string, ClaimParameters, PlacementInEffect]>([
    ['the claim', WHOLE, {}],
    ['each request', {}, { request: WHOLE }],
    ['the manager', {}, { manager: WHOLE }],
    ['the manager, beside other options', { cpuManagerPolicyOptions: {} }, { manager: WHOLE }],
  ])(
    'have all CPUs that are counted where whole cores are wanted of %s, and mixed ones are none',
    (_, more, inEffect) => {
      fc.assert(
        fc.property(fc.integer({ min: 1000, max: 8000 }), (asked) => {
          const counted = Math.ceil(asked / 2000) * 2;
          const one = result('a', 'node-0', { cpu: BigInt(counted) * UNIT }, milli(asked));
          const { limits, exclusive, options } = requestOf(one, { ...more, mixed: true }, inEffect);
          const isWhole = Math.floor(asked / 1000) % 2 === 0;
          expect(exclusive % 2).toBe(0);
          expect([limits.cpu, options.mixed]).toEqual(isWhole ? [asked / 1000, true] : [counted, undefined]);
        }),
      );
    },
  );

  it('stay mixed where the claim wants no whole cores, or holds siblings', () => {
    const one = result('a', 'node-0', { cpu: 4n * UNIT }, milli(3500));
    const not = { cpuManagerPolicyOptions: { 'full-pcpus-only': false } };
    for (const more of [not, { smt: 'hold-sibling' as const }])
      expect(requestOf(one, { ...more, mixed: true }, { manager: WHOLE }).limits.cpu).toBe(3.5);
  });

  it('ignore of memory alone that the other requests are mixed and movable', () => {
    for (const device of ['node-0', 'memory-0']) {
      const { limits, exclusive, options } = requestOf(result('a', device, { memory: 4096n * UNIT }), {
        ...{ mixed: true, movable: true },
      });
      expect([limits, exclusive]).toEqual([{ memory: 4096 }, 0]);
      expect(options).toEqual({ policy: 'single-numa-node', owner: 'persistent', within: '0-7' });
    }
    for (const [device, parameters] of [
      ['core-0', { mixed: true }],
      ['cpu-3', { movable: true }],
    ] as const)
      expect(() => requestOf(result('a', device), parameters)).toThrow(/left out for devices/);
  });
});

describe('the parameters of a claim', () => {
  const config = (value: object) => ({
    requests: [],
    value: { apiVersion: 'numalign.io/v1alpha1', kind: 'ClaimParameters', ...value },
  });

  it('may be mixed and movable', () => {
    const value = { mixed: true, movable: { maxPerHour: 1 } };
    expect(parametersOf('numalign.io', [config(value)], 'a')).toEqual(value);
    expect(parametersOf('numalign.io', [config(value), config({ movable: false })], 'a')).toEqual({
      mixed: true,
      movable: false,
    });
  });

  it.each([
    [{ mixed: 'yes' }, /mixed must be .*'yes'/],
    [{ movable: 'yes' }, /movable must be true, false or/],
    [{ movable: { often: true } }, /often/],
    [{ within: '0-1' }, /capacity of the request/],
  ])('are refused with %j', (value, message) => {
    expect(() => parametersOf('numalign.io', [config(value)], 'a')).toThrow(message);
  });
});
