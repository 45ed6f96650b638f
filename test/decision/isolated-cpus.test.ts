// needs: nothing
// Isolated CPUs are a pool of their own: never shared, and only for requests for them.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { CpuSnapshot } from '../../lib/account/pools.js';
import { freeCpus, isolatedPool, sharedPool } from '../../lib/account/pools.js';
import { discover } from '../../lib/entries/topology.js';
import { AdmissionError, CpuSet, type Manager, type ManagerOptions, openManager } from '../../lib/index.js';
import { kernelCpus, unbalancedCpus } from '../../lib/machine/isolated-cpus.js';
import { decodeCheckpoint } from '../../lib/state/format/journal.js';
import { budget } from '../support/budget.mjs';
import { machineAt } from '../support/changing-machine.js';
import { errorOf } from '../support/error-of.js';
import { guaranteed, simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf } from '../support/state-text.js';

// Two NUMA nodes of four cores of two threads: CPUs 0-1, 2-3, … 14-15.
const MACHINE = 'numa:2 core:4 pu:2';
const isolated = (list: string, options: ManagerOptions = {}) =>
  simulate(MACHINE, { isolatedCPUs: list, ...options });
const sets = (manager: Manager) =>
  [manager.sharedPool(), manager.freeCpus(), manager.freeIsolatedCpus(), manager.settings().isolatedCPUs].map(
    String,
  );

describe('the isolated CPUs of a machine', () => {
  it('are none by default', async () => {
    const manager = await simulate(MACHINE);
    expect(sets(manager)).toEqual(['0-15', '0-15', '', '']);
    const { uid } = await manager.acquire({ cpu: 2, isolation: 'prefer' });
    expect(manager.grants()).toMatchObject([{ uid, isIsolated: false }]);
  });

  it('are neither shared nor granted without a request for them', async () => {
    const manager = await isolated('4-7,12-15');
    expect(sets(manager)).toEqual(['0-3,8-11', '0-3,8-11', '4-7,12-15', '4-7,12-15']);
    const all = await manager.acquire({ cpu: 7, policy: 'none' });
    expect(all.cpus.isSubsetOf(CpuSet.parse('0-3,8-11'))).toBe(true);
    expect(all.isIsolated).toBe(false);
    const error = await errorOf(() => manager.acquire({ cpu: 1 }));
    expect(error.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect(error.message).toContain('isolated: 4-7,12-15, only for requests for isolated CPUs');
    expect(error.details.explanation).toMatchObject({
      resources: [{ resource: 'cpu', isolated: '4-7,12-15' }],
    });
  });

  it('leave reserved CPUs to the system, shared or not', async () => {
    const shared = await isolated('0-1,8', { reservedSystemCPUs: '0' });
    expect(sets(shared)).toEqual(['0,2-7,9-15', '2-7,9-15', '1,8', '1,8']);
    const strict = await isolated('0-1,8', { reservedSystemCPUs: '0', strictCPUReservation: true });
    expect(sets(strict)).toEqual(['2-7,9-15', '2-7,9-15', '1,8', '1,8']);
  });

  it('do not include CPUs that are reserved by number', async () => {
    const manager = await isolated('0-3', { systemReserved: { cpu: 2 } });
    expect(String(manager.settings().reservedSystemCPUs)).toBe('4-5');
    const error = await errorOf(() => isolated('0-14', { systemReserved: { cpu: 2 } }));
    expect(error).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringContaining('not isolated'),
    });
  });

  it('must be managed to be granted', async () => {
    const manager = await isolated('6-9', { managedCPUs: '0-7' });
    expect(sets(manager)).toEqual(['0-5', '0-5', '6-7', '6-7']);
  });

  it('must leave a shared CPU, and must be CPUs of the machine', async () => {
    expect((await errorOf(() => isolated('0-15'))).code).toBe('ERR_CONFIG_CONFLICT');
    expect((await errorOf(() => isolated('15-16'))).message).toContain('isolatedCPUs names CPU 16');
    const manager = await isolated('0-7');
    const error = await errorOf(() => manager.configure({ isolatedCPUs: '0-15' }));
    expect(error.code).toBe('ERR_CONFIG_CONFLICT');
    expect(String(manager.settings().isolatedCPUs)).toBe('0-7');
  });
});

describe('a request', () => {
  it('that requires isolated CPUs gets no others', async () => {
    const manager = await isolated('4-7,12-15');
    const grant = await manager.acquire({ cpu: 4, isolation: 'require' });
    expect(String(grant.cpus)).toBe('4-7');
    expect(grant.isIsolated).toBe(true);
    expect(manager.grants()).toMatchObject([{ isIsolated: true }]);
    expect(sets(manager)).toEqual(['0-3,8-11', '0-3,8-11', '12-15', '4-7,12-15']);

    const error = await errorOf(() => manager.acquire({ cpu: 5, isolation: 'require', policy: 'none' }));
    expect(error).toMatchObject({
      code: 'ERR_INSUFFICIENT_CPUS',
      details: { valid: '1 to 4', explanation: { resources: [{ isolated: '4-7,12-15' }] } },
    });
    expect(error.message).toContain('5 isolated CPUs requested: 4 are free (12-15)');
    expect(error.message).toContain('free by NUMA node: 0: 0 of 4, 1: 4 of 4');
    // None of them is left to share: that does not matter.
    await manager.acquire({ cpu: 4, isolation: 'require' });
    await grant.release();
    expect(sets(manager)).toEqual(['0-3,8-11', '0-3,8-11', '4-7', '4-7,12-15']);
  });

  it('that requires them without any is refused with that reason', async () => {
    const manager = await simulate(MACHINE);
    const error = await errorOf(() => manager.acquire({ cpu: 1, isolation: 'require', policy: 'none' }));
    expect(error.message).toContain(
      '1 isolated CPU requested: the settings leave no isolated CPU that can be granted',
    );
    expect(error.details).toMatchObject({ valid: 'none now' });
    expect(
      manager.plan({ containers: [guaranteed('app', { cpu: 1 })] }, { isolation: 'require' }),
    ).toMatchObject({
      admitted: false,
      code: 'ERR_INSUFFICIENT_CPUS',
    });
  });

  it('that prefers them gets only them if they suffice, else only others', async () => {
    const manager = await isolated('12-15');
    const pod = { containers: [guaranteed('a', { cpu: 2 }), guaranteed('b', { cpu: 3 })] };
    const placed = await manager.admit(pod, { isolation: 'prefer' });
    expect(placed.containers.every(({ cpus }) => cpus?.intersects(CpuSet.parse('12-15')) === false)).toBe(
      true,
    );
    const grant = await manager.acquire({ cpu: 4, isolation: 'prefer' });
    expect(String(grant.cpus)).toBe('12-15');
    expect(manager.plan(pod, { isolation: 'prefer' }).admitted).toBe(true);
    const error = await errorOf(() => manager.acquire({ cpu: 8, isolation: 'prefer', policy: 'none' }));
    expect(error.message).toMatch(
      /^8 exclusive CPUs requested: one of the CPUs [-,0-9]+ must stay shared; at most 6 can be granted now; /,
    );
    expect(manager.grants().map(({ isIsolated }) => isIsolated)).toEqual([false, true]);
  });

  it('of a name gets the same isolated CPUs again, but no others if it prefers isolated ones', async () => {
    const manager = await isolated('4-7,12-15');
    const again = async (isolation: 'never' | 'prefer' | 'require') => {
      const grant = await manager.acquire({ cpu: 2, name: 'gateway', isolation });
      const cpus = String(grant.cpus);
      await grant.release();
      return cpus;
    };
    const blocker = await manager.acquire({ cpu: 2, isolation: 'require' });
    expect(String(blocker.cpus)).toBe('4-5');
    expect(await again('require')).toBe('6-7');
    await blocker.release();
    expect(await again('prefer')).toBe('6-7');
    expect(await again('never')).toBe('0-1');
    expect(await again('prefer')).toBe('4-5');
  });

  it('holds SMT siblings of its pool only', async () => {
    // CPU 5 is isolated, its sibling 4 is not.
    const manager = await isolated('5-7');
    const grant = await manager.acquire({ cpu: 1, smt: 'hold-sibling', isolation: 'require' });
    expect([grant.cpus, grant.held].map(String)).toEqual(['6', '7']);
    const error = await errorOf(() =>
      manager.acquire({ cpu: 1, smt: 'hold-sibling', isolation: 'require', policy: 'none' }),
    );
    expect(error.message).toContain('1 whole core of isolated CPUs requested: none is free');
    expect(String(manager.freeIsolatedCpus())).toBe('5');
  });

  it('is aligned within them like elsewhere', async () => {
    const manager = await isolated('0,4,8-11');
    const options = { cpu: 3, isolation: 'require', policy: 'single-numa-node' } as const;
    expect(String((await manager.acquire(options)).cpus)).toBe('8-10');
    expect((await errorOf(() => manager.acquire(options))).code).toBe('ERR_TOPOLOGY_AFFINITY');
  });

  it('that waits for isolated CPUs gets released ones, and no others', async () => {
    const manager = await isolated('14-15');
    const first = await manager.acquire({ cpu: 2, isolation: 'require' });
    const other = await manager.acquire({ cpu: 2 });
    let isThere = false;
    const waiting = manager.acquire({ cpu: 1, isolation: 'require', wait: true }).then((grant) => {
      isThere = true;
      return grant;
    });
    await other.release();
    expect(isThere).toBe(false);
    await first.release();
    expect(String((await waiting).cpus)).toBe('14');
    expect((await errorOf(() => manager.acquire({ cpu: 3, isolation: 'require', wait: true }))).code).toBe(
      'ERR_INSUFFICIENT_CPUS',
    );
  });

  it.each([{ isolation: 'always' }, { isolation: true }])('with %o is refused', async (options) => {
    const manager = await isolated('14-15');
    const error = await errorOf(() => manager.acquire({ cpu: 1, ...options } as never));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option: 'isolation' } });
    expect(error.message).toContain("'never' or 'prefer' or 'require'");
  });

  it('cannot get them if no container gets exclusive CPUs', async () => {
    const manager = await isolated('14-15', { cpuManagerPolicy: 'none' });
    const pod = { containers: [guaranteed('app', { cpu: 1 })] };
    expect((await errorOf(() => manager.admit(pod, { isolation: 'prefer' }))).code).toBe(
      'ERR_INVALID_OPTION',
    );
  });
});

describe('a grant of isolated CPUs', () => {
  it('grows by isolated CPUs only, like others grow by others', async () => {
    const manager = await isolated('4-7,12-15');
    const grant = await manager.acquire({ cpu: 1, isolation: 'prefer' });
    await grant.resize({ cpu: 3, noticeMs: 0 });
    expect(grant.cpus.isSubsetOf(CpuSet.parse('4-7,12-15'))).toBe(true);
    expect((await errorOf(() => grant.resize({ cpu: 9, noticeMs: 0 }))).message).toContain('4-7,12-15');
    const other = await manager.acquire({ cpu: 7, isolation: 'prefer', policy: 'none' });
    expect(other.isIsolated).toBe(false);
    expect((await errorOf(() => other.resize({ cpu: 9, noticeMs: 0 }))).code).toBe('ERR_INSUFFICIENT_CPUS');
  });

  it('is flagged, and nothing more, once its CPUs are no longer isolated', async () => {
    const manager = await isolated('12-15');
    const grant = await manager.acquire({ cpu: 3, isolation: 'require' });
    await manager.configure({ isolatedCPUs: '0-1,12' });
    expect(grant.flags()).toEqual([
      {
        code: 'CPU_NOT_ISOLATED',
        message: 'CPUs 13-14 are no longer isolated',
        cpus: CpuSet.parse('13-14'),
      },
    ]);
    expect(grant.isIsolated).toBe(true);
    expect(sets(manager)).toEqual(['2-11,15', '2-11,15', '0-1', '0-1,12']);
    await manager.configure({ isolatedCPUs: '12-15' });
    expect(grant.flags()).toEqual([]);
  });
});

describe('the setting', () => {
  it('is recorded once for all, and a state without it works as before', async () => {
    const stateDir = makeStateDir();
    const topology = await discover({ synthetic: MACHINE });
    const open = async (options: ManagerOptions = {}) => {
      const manager = await openManager({ topology, stateDir, ...options });
      onTestFinished(() => manager.close());
      return manager;
    };
    const settings = () => membersOf(stateDir).settings;
    const manager = await open();
    expect(settings()).not.toHaveProperty('isolatedCPUs');
    await manager.configure({ isolatedCPUs: '2-3' });
    expect(settings()).toMatchObject({ isolatedCPUs: '2-3' });
    expect(String((await open()).settings().isolatedCPUs)).toBe('2-3');
    await open({ isolatedCPUs: CpuSet.parse('2-3') });
    const error = await errorOf(() => open({ isolatedCPUs: null }));
    expect(error.code).toBe('ERR_CONFIG_CONFLICT');
    expect(error.message).toContain('isolatedCPUs is 2-3, not what the kernel isolates');
    await manager.configure({ isolatedCPUs: '' });
    expect(settings()).toMatchObject({ isolatedCPUs: '' });
    await manager.configure({ isolatedCPUs: null });
    expect(settings()).not.toHaveProperty('isolatedCPUs');
  });

  it('may name CPUs that the machine has lost', async () => {
    const stateDir = makeStateDir();
    const whole = await openManager({ topology: await machineAt(), stateDir, isolatedCPUs: '4-7,12-15' });
    const part = await openManager({
      topology: await machineAt({ offline: '7' }),
      stateDir,
      isolatedCPUs: '4-7,12-15',
    });
    onTestFinished(() => {
      for (const manager of [whole, part]) manager.close();
    });
    expect(part.warnings).toMatchObject([{ code: 'SETTING_UNMET', option: 'isolatedCPUs' }]);
    expect(String(part.freeIsolatedCpus())).toBe('4-6,12-15');
  });
});

describe('for the kubelet', () => {
  it('free isolated CPUs are shared, since it knows no other kind, and its pods may have them', async () => {
    const from = await isolated('12-15');
    await from.acquire({ cpu: 2, isolation: 'require' });
    const { cpuManagerState, memoryManagerState } = from.exportKubelet();
    expect(JSON.parse(cpuManagerState)).toMatchObject({ defaultCpuSet: '0-11,14-15' });
    const to = await isolated('12-15');
    const { pods } = await to.importKubelet({ cpuManagerState, memoryManagerState });
    expect(pods.map(({ containers }) => containers.map(({ cpus }) => String(cpus)))).toEqual([['12-13']]);
    expect(to.grants()).toMatchObject([{ isIsolated: true }]);
    expect(sets(to)).toEqual(sets(from));
  });
});

describe('this kernel', () => {
  it('reports its isolated CPUs, and balances no load over those that it lists as isolated', async () => {
    const listed = CpuSet.parse(readFileSync('/sys/devices/system/cpu/isolated', 'utf8').trim());
    expect(listed.isSubsetOf(kernelCpus().isolated)).toBe(true);
    expect(listed.intersects(unbalancedCpus())).toBe(!listed.isEmpty);
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    expect(manager.settings().isolatedCPUs).toEqual(
      kernelCpus().isolated.intersection(manager.topology.cpus),
    );
  });
});

describe('with any isolated, reserved and granted CPUs', () => {
  const cpus = fc.uniqueArray(fc.nat(15)).map((ids) => CpuSet.from(ids));
  const request = fc.record({
    cpu: fc.integer({ min: 1, max: 6 }),
    isolation: fc.constantFrom('never' as const, 'prefer' as const, 'require' as const),
    policy: fc.constantFrom('none' as const, 'best-effort' as const, 'single-numa-node' as const),
    hold: fc.boolean(),
  });

  it('the shared pool, the free isolated CPUs and all grants are the managed CPUs, each once', async () => {
    const topology = await discover({ synthetic: MACHINE });
    await fc.assert(
      fc.asyncProperty(
        fc.record({ isolated: cpus, reserved: cpus, strict: fc.boolean() }),
        fc.array(request, { maxLength: 6 }),
        async ({ isolated, reserved, strict }, requests) => {
          const settings = {
            isolatedCPUs: isolated,
            reservedSystemCPUs: reserved,
            strictCPUReservation: strict,
          };
          const manager = await openManager({ topology, ...settings }).catch(() => undefined);
          if (!manager) return;
          for (const { hold, ...options } of requests) {
            const asked = {
              ...options,
              ...(hold && { smt: 'hold-sibling' as const }),
              owner: 'persistent' as const,
            };
            const grant = await manager.acquire(asked).catch((error: AdmissionError) => error);
            if (grant instanceof AdmissionError) {
              expect(grant.details.explanation).toBeDefined();
              continue;
            }
            const all = grant.cpus.union(grant.held);
            expect(all.isSubsetOf(isolated) || !all.intersects(isolated)).toBe(true);
            expect(grant.isIsolated).toBe(all.isSubsetOf(isolated));
            if (options.isolation === 'require') expect(grant.isIsolated).toBe(true);
            if (options.isolation === 'never') expect(grant.isIsolated).toBe(false);
          }
          const sharedPool = manager.sharedPool();
          const freeIsolatedCpus = manager.freeIsolatedCpus();
          expect(sharedPool.isEmpty).toBe(false);
          expect(sharedPool.intersects(isolated.difference(reserved))).toBe(false);
          expect(freeIsolatedCpus.isSubsetOf(isolated.difference(reserved))).toBe(true);
          const parts = [sharedPool, freeIsolatedCpus, ...manager.grants().map((grant) => grant.cpus)];
          const union = parts.reduce((sum, part) => sum.union(part), CpuSet.EMPTY);
          expect(parts.reduce((sum, part) => sum + part.size, 0)).toBe(union.size);
          expect(union).toEqual(topology.cpus.difference(strict ? reserved : CpuSet.EMPTY));
          manager.close();
        },
      ),
      { numRuns: budget({ all: 1_000, usual: 50 }) },
    );
  });

  it('a kernel that isolates others changes shared and free CPUs at once, and no grant', async () => {
    const stateDir = makeStateDir();
    const manager = await simulate(MACHINE, { stateDir });
    await manager.acquire({ cpu: 4 });
    const { assignments } = decodeCheckpoint(readFileSync(join(stateDir, 'state.json')));
    const at = (list: string): CpuSnapshot => ({
      online: manager.topology.cpus,
      isolated: CpuSet.parse(list),
    });
    for (const [list, shared, free] of [
      ['', '4-15', ''],
      ['3-5', '6-15', '4-5'],
      ['14-15', '4-13', '14-15'],
    ] as const) {
      expect(String(sharedPool(assignments, at(list)))).toBe(shared);
      expect(String(freeCpus(assignments, at(list), 'isolated'))).toBe(free);
      expect(String(isolatedPool(assignments.settings, at(list)))).toBe(list);
    }
  });
});
