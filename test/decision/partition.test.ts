// needs: nothing
// Any sequence of admissions, releases and openings, on any machine: no CPU is granted twice, and
// none is lost.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CpuManagerPolicyOptions } from '../../lib/entries/kubelet.js';
import { discover, type MachineJson, type Topology } from '../../lib/entries/topology.js';
import { AdmissionError, CpuSet, type Manager, openManager, type Pod } from '../../lib/index.js';
import { decodeCheckpoint } from '../../lib/state/format/journal.js';
import { budget } from '../support/budget.mjs';
import { irregularMachines } from '../support/random-machine.js';
import { guaranteed } from '../support/simulated.js';

const RECORDED = fileURLToPath(new URL('../conformance/vectors/topologies.jsonl.gz', import.meta.url));
// Each machine has a folder for the whole run: an open folder stays for the life of the process.
const IRREGULAR_MACHINES = 40;

interface Bench {
  readonly topology: Topology;
  readonly stateDir: string;
}

let parent: string;
let machines: Bench[];

beforeAll(async () => {
  parent = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'numalign-test-'));
  const recorded = gunzipSync(readFileSync(RECORDED)).toString().trim().split('\n');
  const json = [
    ...recorded.map((line) => JSON.parse(line) as MachineJson),
    ...fc.sample(irregularMachines, IRREGULAR_MACHINES),
  ];
  machines = await Promise.all(
    json.map(async (machine, i) => ({
      topology: await discover({ json: machine }),
      stateDir: join(parent, String(i)),
    })),
  );
});
afterAll(() => rmSync(parent, { recursive: true, force: true }));

const cpuOptions: fc.Arbitrary<CpuManagerPolicyOptions> = fc.constantFrom(
  {},
  { 'full-pcpus-only': true },
  { 'distribute-cpus-across-numa': true },
  { 'distribute-cpus-across-numa': true, 'full-pcpus-only': true },
  { 'distribute-cpus-across-cores': true },
  { 'prefer-align-cpus-by-uncorecache': true },
);

const count = fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 40 }));
const admission = fc.record({
  do: fc.constant('admit' as const),
  init: fc.array(fc.record({ cpu: count, sidecar: fc.boolean() }), { maxLength: 2 }),
  apps: fc.array(count, { minLength: 1, maxLength: 2 }),
  isGuaranteed: fc.constantFrom(true, true, true, false),
  cpuManagerPolicyOptions: cpuOptions,
  policy: fc.constantFrom(
    'none' as const,
    'best-effort' as const,
    'restricted' as const,
    'single-numa-node' as const,
  ),
  scope: fc.constantFrom('container' as const, 'pod' as const),
  hold: fc.boolean(),
  isolation: fc.constantFrom('never' as const, 'never' as const, 'prefer' as const, 'require' as const),
});
type Admission = typeof admission extends fc.Arbitrary<infer T> ? T : never;
const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: admission },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('release' as const), which: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('reopen' as const) }) },
  ),
  { minLength: 1, maxLength: 8 },
);

// For any machine: taken modulo its number.
const bench = fc.record({
  which: fc.nat(1e6),
  reserve: fc.nat(1e6),
  isolate: fc.oneof(fc.constant(0), fc.nat(1e6)),
  strict: fc.boolean(),
});

async function admit(manager: Manager, step: Admission): Promise<Pod | undefined> {
  const { init, apps, isGuaranteed, hold, cpuManagerPolicyOptions, policy, scope, isolation } = step;
  const container = (name: string, cpu: number) =>
    isGuaranteed ? guaranteed(name, { cpu }) : { name, requests: { cpu } };
  const pod = {
    initContainers: init.map(({ cpu, sidecar }, i) => ({
      ...container(`init-${i}`, cpu),
      ...(sidecar && { restartPolicy: 'Always' }),
    })),
    containers: apps.map((cpu, i) => container(`app-${i}`, cpu)),
  };
  const options = {
    owner: 'persistent' as const,
    cpuManagerPolicyOptions,
    policy,
    scope,
    isolation,
    ...(hold && { smt: 'hold-sibling' as const }),
  };
  const plan = manager.plan(pod, options);
  try {
    const admitted = await manager.admit(pod, options);
    expect(plan.containers).toEqual(admitted.containers);
    const asked = [...init.map(({ cpu }) => cpu), ...apps];
    admitted.containers.forEach(({ cpus, held }, i) => {
      expect(cpus?.size ?? 0).toBe(isGuaranteed ? asked[i] : 0);
      if (!cpus) return;
      expect(cpus.intersects(held)).toBe(false);
      const all = cpus.union(held);
      if (hold || cpuManagerPolicyOptions['full-pcpus-only'])
        expect(manager.topology.wholeCores(all)).toEqual(all);
    });
    return admitted;
  } catch (error) {
    if (!(error instanceof AdmissionError)) throw error;
    expect(plan).toMatchObject({ admitted: false, code: error.code, reason: error.details.reason });
    return undefined;
  }
}

/**
 * Exclusive sets are disjoint and within one pool each, none is reserved, and with the shared pool
 * and the free isolated CPUs they are all managed CPUs.
 */
function checkPartition(manager: Manager): void {
  const { managedCPUs, reservedSystemCPUs, strictCPUReservation, isolatedCPUs } = manager.settings();
  const sharedPool = manager.sharedPool();
  const freeIsolatedCpus = manager.freeIsolatedCpus();
  let exclusive = CpuSet.EMPTY;
  for (const { uid, cpus, isIsolated } of manager.grants()) {
    expect(isIsolated ? cpus.isSubsetOf(isolatedCPUs) : !cpus.intersects(isolatedCPUs)).toBe(true);
    expect(cpus.intersects(exclusive), `the CPUs of ${uid} belong to another grant too`).toBe(false);
    exclusive = exclusive.union(cpus);
    // Sets of containers that run at the same time are disjoint.
    const together = manager.pod(uid).containers.filter(({ kind }) => kind !== 'init');
    const sum = together.reduce((n, container) => n + (container.cpus?.size ?? 0) + container.held.size, 0);
    const union = together.reduce((set, c) => set.union(c.cpus ?? CpuSet.EMPTY).union(c.held), CpuSet.EMPTY);
    expect(union.size).toBe(sum);
    expect(union.isSubsetOf(cpus)).toBe(true);
  }
  expect(exclusive.intersects(reservedSystemCPUs)).toBe(false);
  expect(sharedPool.isEmpty).toBe(false);
  expect(sharedPool.intersects(exclusive)).toBe(false);
  expect(sharedPool.intersects(isolatedCPUs)).toBe(false);
  expect(freeIsolatedCpus).toEqual(isolatedCPUs.difference(exclusive));
  const outside = strictCPUReservation ? reservedSystemCPUs : CpuSet.EMPTY;
  expect(sharedPool.union(exclusive).union(freeIsolatedCpus)).toEqual(managedCPUs.difference(outside));
}

function checkOnDisk(manager: Manager): void {
  const { assignments, generation } = decodeCheckpoint(readFileSync(join(manager.stateDir, 'state.json')));
  expect(generation).toBe(manager.generation());
  const view = (id: string) =>
    manager.pod(id).containers.map(({ cpus, held, hint }) => [cpus ?? CpuSet.EMPTY, held, hint]);
  expect(
    assignments.pods.map((pod) => [
      pod.uid,
      pod.containers.map(({ cpus, held, hint }) => [cpus, held, hint]),
    ]),
  ).toEqual(manager.grants().map(({ uid }) => [uid, view(uid)]));
}

describe('random sequences of admit, release and reopen', () => {
  it('keep exclusive sets and shared pool a partition of the managed CPUs, and the state on disk equal', async () => {
    await fc.assert(
      fc.asyncProperty(bench, steps, async ({ which, reserve, isolate, strict }, sequence) => {
        const { topology, stateDir } = machines[which % machines.length]!;
        const open = () => openManager({ topology, stateDir });
        let manager = await open();
        for (const { uid } of manager.grants()) await manager.release(uid);
        const ids = topology.cpus.toArray();
        const reservedSystemCPUs = CpuSet.from(ids.slice(0, reserve % Math.min(4, ids.length)));
        const most = Math.floor((ids.length - reservedSystemCPUs.size) / 2);
        const isolatedCPUs = CpuSet.from(ids.slice(ids.length - (isolate % (most + 1))));
        await manager.configure({ reservedSystemCPUs, strictCPUReservation: strict, isolatedCPUs });
        for (const step of sequence) {
          if (step.do === 'admit') await admit(manager, step);
          if (step.do === 'release') {
            const grants = manager.grants();
            if (grants.length > 0) await manager.release(grants[step.which % grants.length]!.uid);
          }
          if (step.do === 'reopen') {
            const before = manager.grants();
            manager.close();
            manager = await open();
            expect(manager.grants()).toEqual(before);
          }
          checkPartition(manager);
        }
        checkOnDisk(manager);
        manager.close();
      }),
      { numRuns: budget({ all: 10_000, usual: 50 }) },
    );
  }, 600_000);
});
