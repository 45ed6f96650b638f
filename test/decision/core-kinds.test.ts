// needs: nothing
// Kinds of cores: P-cores and E-cores, big and LITTLE ones.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type AcquireOptions, CpuSet, type Manager } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { type CoreRow, hybridJson, hybridMachine, P8_E12, THREE_KINDS } from '../support/hybrid.js';
import { guaranteed, simulate } from '../support/simulated.js';

const managerOf = async (rows: readonly CoreRow[], options = {}) =>
  simulate(await hybridMachine(rows), options);

const podOf = (...counts: readonly number[]) => ({
  containers: counts.map((cpu, i) => guaranteed(`app-${i}`, { cpu })),
});

const cpusOf = (manager: Manager, cpu: number, options: Pick<AcquireOptions, 'coreKind'> = {}) =>
  manager.plan(podOf(cpu), options).containers.map(({ cpus }) => String(cpus));

it.each<['performance' | 'efficiency', string]>([
  ['performance', '16-19'],
  ['efficiency', '0-3'],
])('a request for %s cores among CPUs of another kind only is rejected', async (coreKind, within) => {
  const manager = await managerOf(P8_E12);
  const { code, explanation } = manager.plan(podOf(1), { coreKind, within });
  expect(code).toBe('ERR_INSUFFICIENT_CPUS');
  expect(explanation!.text).toContain(`to be chosen from CPUs ${within} only`);
});

describe('a request without a wish', () => {
  it('gets performance cores while they suffice', async () => {
    const manager = await managerOf(P8_E12);
    expect([2, 12, 16].map((count) => cpusOf(manager, count))).toEqual([['0-1'], ['0-11'], ['0-15']]);
  });

  it('gets the next kind if too few performance cores are free', async () => {
    const manager = await managerOf(THREE_KINDS);
    await manager.acquire({ cpu: 11 });
    expect([cpusOf(manager, 1), cpusOf(manager, 2)]).toEqual([['11'], ['12-13']]);
  });

  it('gets several kinds only if none has enough', async () => {
    const manager = await managerOf(P8_E12);
    expect(cpusOf(manager, 17)).toEqual(['0-16']);
  });

  it('gets as few slow cores as possible in a mixture', async () => {
    const manager = await managerOf(THREE_KINDS);
    expect([13, 20, 21].map((count) => cpusOf(manager, count))).toEqual([['0-12'], ['0-19'], ['0-20']]);
    await manager.acquire({ cpu: 8 });
    expect(cpusOf(manager, 9, { coreKind: 'efficiency' })).toEqual(['12-20']);
    expect(cpusOf(manager, 11)).toEqual(['8-18']);
  });

  it('has containers on one kind each where the pod has none', async () => {
    const manager = await managerOf(P8_E12);
    const { containers } = manager.plan(podOf(10, 10));
    expect(containers.map(({ cpus }) => String(cpus))).toEqual(['0-9', '16-25']);
  });

  it('is the same for a pod as a whole, of which no container is on another kind', async () => {
    const manager = await managerOf(P8_E12);
    await manager.acquire({ cpu: 6 });
    const { containers } = manager.plan(podOf(10, 2));
    expect(containers.map(({ cpus }) => String(cpus))).toEqual(['16-25', '26-27']);
  });

  it('has the SMT rules of the kind: whole cores of two threads, or of one', async () => {
    const manager = await managerOf(P8_E12, { cpuManagerPolicyOptions: { 'full-pcpus-only': true } });
    expect([4, 3].map((count) => cpusOf(manager, count))).toEqual([['0-3'], ['16-18']]);
  });

  it('has the preferred hints of the kind, so that a strict policy admits it', async () => {
    const rows = [0, 1].flatMap((node) => P8_E12.map((row) => ({ ...row, node })));
    const manager = await managerOf(rows, { policy: 'single-numa-node' });
    expect(cpusOf(manager, 16)).toEqual(['0-15']);
  });
});

describe('a request', () => {
  it.each([
    ['performance', 2, '0-1'],
    ['efficiency', 2, '12-13'],
    ['efficiency', 10, '12-21'],
    ['any', 2, '12-13'],
  ] as const)('for %s cores gets %i of them', async (coreKind, cpu, expected) => {
    expect(cpusOf(await managerOf(THREE_KINDS), cpu, { coreKind })).toEqual([expected]);
  });

  it('has the choice of its manager', async () => {
    const manager = await managerOf(P8_E12, { coreKind: 'efficiency' });
    expect([cpusOf(manager, 1), cpusOf(manager, 1, { coreKind: 'best' })]).toEqual([['16'], ['0']]);
  });

  it('for performance cores is rejected with what each kind has', async () => {
    const manager = await managerOf(P8_E12);
    await manager.acquire({ cpu: 13 });
    const error = await errorOf(() => manager.acquire({ cpu: 4, coreKind: 'performance' }));
    expect(error.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect(error.message).toContain(
      'this machine has performance cores 0-15 (3 free), efficiency cores 16-27 (12 free)',
    );
    expect(error.message).not.toContain('outside the cpuset');
  });

  it('for performance cores is rejected, and no move would help, as grants stay on their kind', async () => {
    const manager = await managerOf(P8_E12, { cpuManagerPolicy: 'dynamic' });
    await manager.acquire({ cpu: 8, movable: true });
    const { repacking, explanation } = manager.plan(podOf(10), { coreKind: 'performance' });
    expect(repacking?.reason).toBe('sum');
    expect(repacking?.text).toBe(
      'no move would help: too little is free in all, with performance cores alone',
    );
    expect(explanation?.text).toContain('performance cores 0-15 (8 free), efficiency cores 16-27 (12 free)');
    expect(explanation?.text).toContain(repacking?.text);
  });

  it('for cores of another kind than a grant has is rejected with a report that names it', async () => {
    const manager = await managerOf(P8_E12, { cpuManagerPolicy: 'dynamic', policy: 'single-numa-node' });
    await manager.acquire({ cpu: 17, coreKind: 'any', movable: true });
    const { repacking } = manager.plan(podOf(12), { coreKind: 'performance' });
    expect(repacking?.text).toBe(
      'no move of a grant that consents would make room, with performance cores alone',
    );
  });

  it('for efficiency cores is rejected on a machine of one kind', async () => {
    const manager = await simulate('core:4 pu:2');
    const error = await errorOf(() => manager.acquire({ cpu: 1, coreKind: 'efficiency' }));
    expect(error.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect(error.message).toBe(
      'efficiency cores requested: this machine has performance cores 0-7 (8 free) and no others',
    );
  });

  it('without exclusive CPUs is admitted whatever kind it names', async () => {
    const pod = { containers: [{ name: 'a', requests: { cpu: '500m' } }] };
    expect((await simulate('core:4 pu:2')).plan(pod, { coreKind: 'efficiency' }).admitted).toBe(true);
  });
});

describe('a grant', () => {
  it('grows on its kind, and on others only when that is full', async () => {
    const manager = await managerOf(P8_E12);
    const grant = await manager.acquire({ cpu: 2 });
    await grant.resize({ cpu: 16 });
    const onOne = String(grant.cpus);
    await grant.resize({ cpu: 18 });
    expect([onOne, String(grant.cpus)]).toEqual(['0-15', '0-17']);
  });

  it('that asked for performance cores never grows beyond them', async () => {
    const manager = await managerOf(P8_E12);
    const grant = await manager.acquire({ cpu: 2, coreKind: 'performance' });
    const error = await errorOf(() => grant.resize({ cpu: 17 }));
    expect([error.code, String(grant.cpus)]).toEqual(['ERR_INSUFFICIENT_CPUS', '0-1']);
  });

  it('that is elastic takes all CPUs of its kind, and none of another', async () => {
    const manager = await managerOf(P8_E12);
    const grant = await manager.acquire({ cpu: { min: 2, max: 28 } });
    expect(String(grant.cpus)).toBe('0-15');
  });
});

describe('reserved CPUs by amount', () => {
  it('come from the slowest kind that has them, or from all slower ones before the fastest', async () => {
    const reserved = async (cpu: string) =>
      String((await managerOf(THREE_KINDS, { systemReserved: { cpu } })).settings().reservedSystemCPUs);
    const found = await Promise.all(['2', '3', '9', '11'].map(reserved));
    expect(found).toEqual(['20-21', '12-14', '12-20', '0,12-21']);
  });
});

const kindRows = fc
  .array(
    fc.record({
      cores: fc.integer({ min: 1, max: 6 }),
      threads: fc.integer({ min: 1, max: 2 }),
      node: fc.nat(1),
    }),
    { minLength: 1, maxLength: 5 },
  )
  .chain((rows) =>
    fc.array(fc.nat(2), { minLength: rows.length, maxLength: rows.length }).map((kinds) => {
      const isOnBoth = rows.some(({ node }) => node === 0);
      return rows.map((row, i) => ({ ...row, node: isOnBoth ? row.node : 0, kind: kinds[i]! }));
    }),
  )
  .filter((rows) => rows.reduce((sum, { cores, threads }) => sum + cores * threads, 0) > 1);

describe('kinds of cores', () => {
  it('are never mixed in a plan while one kind can hold the request', async () => {
    await fc.assert(
      fc.asyncProperty(kindRows, fc.integer({ min: 1, max: 12 }), fc.nat(6), async (rows, cpu, before) => {
        const topology = await hybridMachine(rows);
        const manager = await simulate(topology);
        try {
          if (before > 0) await manager.acquire({ cpu: before, coreKind: 'any' }).catch(() => {});
          const plan = manager.plan(podOf(cpu));
          const cpus = plan.containers[0]?.cpus ?? CpuSet.EMPTY;
          const used = topology.coreKinds.filter((kind) => kind.cpus.intersects(cpus));
          // One CPU stays shared.
          const fits = topology.coreKinds.filter(
            ({ cpus: ofKind }) =>
              ofKind.intersection(manager.freeCpus()).size >= cpu && manager.sharedPool().size > cpu,
          );
          expect(used.length > 1 && fits.length > 0).toBe(false);
          // The fastest that can.
          if (fits.length > 0) expect(used[0]).toBe(fits[0]);
          expect(plan.admitted).toBe(manager.plan(podOf(cpu), { coreKind: 'any' }).admitted);
        } finally {
          await manager.close();
        }
      }),
      { numRuns: budget({ all: 2000, usual: 60 }) },
    );
  });

  it('are never mixed in a pod that one kind could hold, whatever the policy and options are', async () => {
    const settings = fc.record({
      policy: fc.constantFrom('none', 'best-effort', 'restricted', 'single-numa-node'),
      scope: fc.constantFrom('container', 'pod'),
      placement: fc.constantFrom('kubelet', 'joint'),
      cpuManagerPolicyOptions: fc.record({
        'full-pcpus-only': fc.boolean(),
        'distribute-cpus-across-numa': fc.boolean(),
        'prefer-align-cpus-by-uncorecache': fc.boolean(),
      }),
    });
    const counts = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 1, maxLength: 3 });
    await fc.assert(
      fc.asyncProperty(kindRows, settings, counts, fc.nat(6), async (rows, options, cpus, before) => {
        const topology = await hybridMachine(rows);
        fc.pre(topology.coreKinds.length > 1);
        const { 'distribute-cpus-across-numa': distributes, ...others } = options.cpuManagerPolicyOptions;
        // The kubelet refuses these two together.
        const cpuManagerPolicyOptions = {
          ...others,
          'distribute-cpus-across-numa': distributes && !others['prefer-align-cpus-by-uncorecache'],
        };
        const manager = await simulate(topology, { ...options, cpuManagerPolicyOptions } as never);
        try {
          if (before > 0) await manager.acquire({ cpu: before, coreKind: 'any' }).catch(() => {});
          const plan = manager.plan(podOf(...cpus));
          const all = plan.containers.reduce(
            (sum, container) => sum.union(container.cpus ?? CpuSet.EMPTY),
            CpuSet.EMPTY,
          );
          const used = topology.coreKinds.filter((kind) => kind.cpus.intersects(all));
          const wishes =
            topology.coreKinds.length === 2
              ? (['performance', 'efficiency'] as const)
              : (['performance'] as const);
          const [first] = wishes.filter((coreKind) => manager.plan(podOf(...cpus), { coreKind }).admitted);
          if (first === undefined) return;
          expect(plan.admitted).toBe(true);
          expect(used.map(({ name }) => name)).toEqual([first]);
        } finally {
          await manager.close();
        }
      }),
      { numRuns: budget({ all: 1000, usual: 20 }) },
    );
  });

  it('are in the JSON of a machine that has several, and read back', async () => {
    const topology = await hybridMachine(THREE_KINDS);
    const json = topology.toJSON();
    expect(json.columns).toContain('coreKind');
    const again = await discover({ json });
    expect(again.toJSON()).toEqual(json);
    expect(again.coreKinds.map(({ id, name, cpus }) => [id, name, String(cpus)])).toEqual([
      [2, 'performance', '0-11'],
      [1, 'efficiency', '12-19'],
      [0, 'efficiency', '20-21'],
    ]);
  });

  it('are not in the JSON of other machines', async () => {
    const topology = await discover({ synthetic: 'core:4 pu:2' });
    expect(topology.toJSON().columns).not.toContain('coreKind');
    expect(topology.coreKinds.map(({ name, cpus }) => [name, String(cpus)])).toEqual([
      ['performance', '0-7'],
    ]);
  });

  it('may have any numbers, of which the order counts', async () => {
    const rows = P8_E12.map((row) => ({ ...row, kind: 100 + 7 * row.kind }));
    const { coreKinds } = await hybridMachine(rows);
    expect(coreKinds.map(({ id, cpus }) => [id, String(cpus)])).toEqual([
      [1, '0-15'],
      [0, '16-27'],
    ]);
  });

  it('divide no core', async () => {
    const machine = hybridJson(P8_E12);
    machine.cpus[1]![4] = 0;
    const error = await errorOf(() => discover({ json: machine }));
    expect([error.code, error.message]).toEqual([
      'ERR_INVALID_TOPOLOGY',
      expect.stringContaining('core 0 spans kinds'),
    ]);
  });
});
