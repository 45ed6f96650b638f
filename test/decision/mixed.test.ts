// needs: nothing
// Grants of whole CPUs and a fraction of the shared pool.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JUST_PLACED, type PodAssignment } from '../../lib/account/pod-assignment.js';
import { type AcquireOptions, CpuSet, type Grant, type Manager, NodeSet } from '../../lib/index.js';
import { decodePod } from '../../lib/state/format/pod-record.js';
import { podText } from '../../lib/state/format/pod-text.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { guaranteed, simulate } from '../support/simulated.js';

const EIGHT = 'core:8 pu:1';
const FULL = 'ERR_SHARED_POOL_FULL';

const codeOf = async (action: () => unknown) => (await errorOf(action))?.code;

describe('a mixed grant', () => {
  it('has its whole CPUs exclusively, and reports the fraction of the shared pool that is booked beside them', async () => {
    const manager = await simulate(EIGHT);
    const grant = await manager.acquire({ cpu: 2.5, mixed: true });
    expect([String(grant.cpus), grant.mixed, grant.availableParallelism]).toEqual(['0-1', 0.5, 2]);
    expect(JSON.parse(JSON.stringify(grant))).toMatchObject({ cpus: '0-1', mixed: 0.5 });
    expect(manager.grants()).toMatchObject([{ uid: grant.uid, mixed: 0.5 }]);
    expect(String(manager.sharedPool())).toBe('2-7');
  });

  it('of whole CPUs is like any other, without a fraction', async () => {
    const manager = await simulate(EIGHT);
    for (const mixed of [true, false]) {
      const grant = await manager.acquire({ cpu: 2, mixed });
      expect([grant.cpus.size, grant.mixed]).toEqual([2, 0]);
    }
  });

  it.each([0.5, 1.0005, 65_535.5, Number.NaN, '2.5'])('cannot have %s CPUs', async (cpu) => {
    const manager = await simulate(EIGHT);
    expect(await errorOf(() => manager.acquire({ cpu: cpu as number, mixed: true }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { value: cpu, valid: 'CPUs from 1 to 65535, such as 2.5, in steps of 0.001' },
    });
  });

  it('needs the option', async () => {
    const manager = await simulate(EIGHT);
    expect(await codeOf(() => manager.acquire({ cpu: 2.5 }))).toBe('ERR_INVALID_OPTION');
    const pod = { containers: [guaranteed('main', { cpu: '2500m' })] };
    expect(manager.plan(pod).containers).toMatchObject([{ cpus: null, mixed: 0 }]);
    expect(manager.plan(pod, { mixed: true }).containers).toMatchObject([
      { cpus: CpuSet.parse('0-1'), mixed: 0.5 },
    ]);
  });

  it('may have parts made of its whole CPUs', async () => {
    const manager = await simulate(EIGHT);
    const grant = await manager.acquire({ cpu: 2.5, mixed: true, parts: { io: 1 } });
    expect([String(grant.parts.io), String(grant.sharedCpus), grant.mixed]).toEqual(['0', '1', 0.5]);
    const tooMany = { cpu: 2.5, mixed: true, parts: { io: 2 } };
    expect(await codeOf(() => manager.acquire(tooMany))).toBe('ERR_INVALID_OPTION');
  });
});

describe('a pod that is admitted as mixed', () => {
  it('books the peak of its containers’ fractions beside their CPUs', async () => {
    const manager = await simulate(EIGHT);
    const pod = await manager.admit(
      {
        initContainers: [guaranteed('init', { cpu: '1900m' })],
        containers: [
          guaranteed('app', { cpu: '2250m' }),
          guaranteed('other', { cpu: '1100m' }),
          guaranteed('small', { cpu: '700m' }),
        ],
      },
      { mixed: true },
    );
    expect(pod.containers.map(({ cpus, mixed }) => [cpus?.size, mixed])).toEqual([
      [1, 0.9],
      [2, 0.25],
      [1, 0.1],
      [undefined, 0],
    ]);
    expect(manager.grants()).toMatchObject([{ mixed: 0.9 }]);
  });

  it('is refused if it has pod-level resources', async () => {
    const manager = await simulate(EIGHT, { featureGates: { PodLevelResourceManagers: true } });
    const whole = { cpu: 4, memory: '1Gi' };
    const pod = { resources: { requests: whole, limits: whole }, containers: [{ name: 'main' }] };
    expect(await codeOf(() => manager.admit(pod, { mixed: true }))).toBe('ERR_INVALID_OPTION');
  });
});

describe('the shared pool', () => {
  it('must have room for the fraction, besides reserved CPUs', async () => {
    const manager = await simulate('core:4 pu:1', { reservedSystemCPUs: '0' });
    expect(await errorOf(() => manager.acquire({ cpu: 3.5, mixed: true }))).toMatchObject({
      code: FULL,
      details: { value: 3.5, valid: '1 to 3', reason: 'UnexpectedAdmissionError', sharedPool: '0' },
    });
    // No release could make room for it.
    expect(await codeOf(() => manager.acquire({ cpu: 3.5, mixed: true, wait: true }))).toBe(FULL);
    expect(manager.grants()).toEqual([]);
    expect((await manager.acquire({ cpu: 2.5, mixed: true })).cpus.size).toBe(2);
  });

  it('keeps the booked CPUs from exclusive grants until a release', async () => {
    const manager = await simulate('core:4 pu:1', { reservedSystemCPUs: '0' });
    const grant = await manager.acquire({ cpu: 1.5, mixed: true });
    expect(await errorOf(() => manager.acquire({ cpu: 2 }))).toMatchObject({
      code: FULL,
      details: { value: 2, valid: '1' },
    });
    const waiting = manager.acquire({ cpu: 2, wait: true });
    await grant.release();
    expect((await waiting).cpus.size).toBe(2);
  });

  it('has room for several fractions on one CPU', async () => {
    const manager = await simulate('core:4 pu:1', { reservedSystemCPUs: '0' });
    await manager.acquire({ cpu: 1.5, mixed: true });
    expect(await codeOf(() => manager.acquire({ cpu: 1.501, mixed: true }))).toBe(FULL);
    expect((await manager.acquire({ cpu: 1.5, mixed: true })).mixed).toBe(0.5);
  });

  it('does not matter if a pod takes nothing of it', async () => {
    const manager = await simulate('core:4 pu:1', { reservedSystemCPUs: '0', isolatedCPUs: '3' });
    await manager.acquire({ cpu: 1.9, mixed: true });
    expect((await manager.acquire({ cpu: 1, isolation: 'require' })).cpus).toEqual(CpuSet.of(3));
    await manager.admit({ containers: [{ name: 'main', requests: { cpu: '300m' } }] });
    expect(await codeOf(() => manager.acquire({ cpu: 1 }))).toBe(FULL);
  });

  it('may lose booked CPUs to a setting, which flags the grants that have booked them', async () => {
    const manager = await simulate('core:4 pu:1', { reservedSystemCPUs: '0' });
    const grant = await manager.acquire({ cpu: 1.5, mixed: true });
    const other = await manager.acquire({ cpu: 1 });
    expect(grant.flags()).toEqual([]);
    await manager.configure({ reservedSystemCPUs: '0,3' });
    expect(grant.flags()).toMatchObject([{ code: 'SHARED_POOL_SHORT', mixed: 0.5, booked: 0.5, left: 0 }]);
    expect(other.flags()).toEqual([]);
    expect(manager.grants().map(({ flags }) => flags.length)).toEqual([1, 0]);
    await other.release();
    expect(grant.flags()).toEqual([]);
  });

  it('loses no booked CPU to an adoption', async () => {
    const manager = await simulate('core:4 pu:1', { reservedSystemCPUs: '0' });
    await manager.acquire({ cpu: 1.5, mixed: true });
    const adopt = (cpus: string) =>
      manager.adopt({ name: 'old', containers: [{ name: 'main', cpus: CpuSet.parse(cpus) }] });
    expect((await errorOf(() => adopt('2-3')))?.message).toContain('mixed grants have booked 500m');
    expect((await adopt('3')).containers).toMatchObject([{ cpus: CpuSet.of(3) }]);
  });
});

describe('a mixed grant that is resized', () => {
  it('keeps its fraction', async () => {
    const manager = await simulate(EIGHT);
    const grant = await manager.acquire({ cpu: 2.25, mixed: true });
    for (const cpu of [4, 1]) {
      await grant.resize({ cpu, noticeMs: 0 });
      expect([grant.cpus.size, grant.mixed]).toEqual([cpu, 0.25]);
    }
    await grant.resize({ memory: 0 });
    expect([grant.cpus.size, grant.mixed]).toEqual([1, 0.25]);
  });

  it('grows into no booked CPU, and may always shrink', async () => {
    const manager = await simulate('core:4 pu:1', { reservedSystemCPUs: '0' });
    const grant = await manager.acquire({ cpu: 2.5, mixed: true });
    expect(await codeOf(() => grant.resize({ cpu: 3 }))).toBe(FULL);
    await grant.resize({ cpu: 1, noticeMs: 0 });
    expect([grant.cpus.size, grant.mixed]).toEqual([1, 0.5]);
  });
});

describe('the record of a grant', () => {
  const pod = {
    uid: 'one',
    name: 'one',
    containers: [],
    booking: null,
    policy: 'none',
    scope: 'container',
    options: {},
    owner: { kind: 'persistent', uuid: '0b6f0c0e-58c5-4b0a-9c0c-6a1c1f1b7a11', pid: null, command: null },
    ...JUST_PLACED,
    admittedAt: '2026-01-01T00:00:00.000Z',
    unknown: {},
  } as unknown as PodAssignment;

  it('has the fraction in millicores, and is read back', () => {
    const text = podText({ ...pod, mixed: 500 });
    expect(text).toContain('"mixed":500');
    expect(decodePod(JSON.parse(text), 'pod').mixed).toBe(500);
  });

  it('omits it if there is none', () => {
    expect(podText({ ...pod, mixed: undefined })).toBe(podText({ ...pod }));
    expect(decodePod(JSON.parse(podText(pod)), 'pod').mixed).toBeUndefined();
  });

  it.each([-1, 0.5, '500'])('is not read with %s', (mixed) => {
    const given = { ...JSON.parse(podText(pod)), mixed };
    expect(() => decodePod(given, 'pod')).toThrow(expect.objectContaining({ code: 'ERR_STATE_CORRUPT' }));
  });
});

type Step = { kind: 'acquire'; milli: number } | { kind: 'release' | 'resize'; at: number; cpu: number };

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('acquire' as const), milli: fc.integer({ min: 1000, max: 4000 }) }),
    fc.record({
      kind: fc.constantFrom('release' as const, 'resize' as const),
      at: fc.nat(9),
      cpu: fc.integer({ min: 1, max: 4 }),
    }),
  ),
  { minLength: 1, maxLength: 25 },
);

const REFUSED = [FULL, 'ERR_INSUFFICIENT_CPUS', 'ERR_TOPOLOGY_AFFINITY'];

async function tried<T>(action: () => Promise<T>): Promise<T | undefined> {
  try {
    return await action();
  } catch (error) {
    expect(REFUSED).toContain((error as { code?: string }).code);
    return undefined;
  }
}

async function take(manager: Manager, grants: Grant[], step: Step): Promise<void> {
  if (step.kind === 'acquire') {
    const options: AcquireOptions = { cpu: step.milli / 1000, mixed: true };
    const grant = await tried(() => manager.acquire(options));
    if (!grant) return;
    expect([grant.cpus.size, grant.mixed]).toEqual([
      Math.floor(step.milli / 1000),
      (step.milli % 1000) / 1000,
    ]);
    grants.push(grant);
  } else if (grants.length > 0) {
    const at = step.at % grants.length;
    if (step.kind === 'resize') await tried(() => grants[at]!.resize({ cpu: step.cpu, noticeMs: 0 }));
    else await grants.splice(at, 1)[0]!.release();
  }
}

describe('mixed grants that come, go and change', () => {
  it.each(['', '0'])(
    'never have more booked than is left to share beside reserved CPUs (%s)',
    async (reserved) => {
      const property = fc.asyncProperty(steps, async (all) => {
        const manager = await simulate('numa:2 core:4 pu:1', { reservedSystemCPUs: reserved });
        const grants: Grant[] = [];
        for (const step of all) {
          await take(manager, grants, step);
          const pool = manager.sharedPool();
          const booked = grants.reduce((sum, { mixed }) => sum + Math.round(mixed * 1000), 0);
          expect(pool.isEmpty).toBe(false);
          expect(booked).toBeLessThanOrEqual(1000 * pool.difference(CpuSet.parse(reserved)).size);
          for (const { numaNodes } of grants) expect(numaNodes).not.toEqual(NodeSet.EMPTY);
        }
        for (const grant of grants) await grant.release();
        manager.close();
      });
      await fc.assert(property, { numRuns: budget({ all: 300, usual: 12 }) });
    },
  );
});
