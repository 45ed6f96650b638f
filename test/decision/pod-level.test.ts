// needs: nothing
// Pods with pod-level resources, on all kinds of machines: booked once, dealt out, given back.
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Assignments, emptyAssignments, findPod } from '../../lib/account/assignments.js';
import type { ContainerAssignment, PodAssignment } from '../../lib/account/pod-assignment.js';
import { removePods } from '../../lib/account/pod-changes.js';
import { cpusOf, memoryOf } from '../../lib/account/pod-holdings.js';
import { exclusiveCpus, freeCpus, sharedPool } from '../../lib/account/pools.js';
import { decide } from '../../lib/decision/decision.js';
import { firstUnmet, partitionOf, sharesOf } from '../../lib/decision/draft/partition.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import type { Question } from '../../lib/decision/question.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';
import { parseConfig } from '../../lib/input/config.js';
import { parsePod } from '../../lib/input/pods/pod-request.js';
import type { PodRequest } from '../../lib/input/pods/pod-resources.js';
import { decodePod } from '../../lib/state/format/pod-record.js';
import { podText } from '../../lib/state/format/pod-text.js';
import { budget } from '../support/budget.mjs';
import { GI, MI, machineOf } from '../support/memory-machine.js';
import { irregularMachines } from '../support/random-machine.js';

const kinds = fc.constantFrom('init' as const, 'sidecar' as const, 'app' as const);
// In the order of pods: containers that start first come first.
const inOrder = <T extends { kind: string }>(list: readonly T[]) => [
  ...list.filter(({ kind }) => kind !== 'app'),
  ...list.filter(({ kind }) => kind === 'app'),
];

describe('a partition', () => {
  const claims = fc
    .array(fc.record({ kind: kinds, amount: fc.option(fc.integer({ min: 1, max: 6 })) }), {
      minLength: 1,
      maxLength: 7,
    })
    .map(inOrder);
  const lowest = (from: CpuSet, count: number) => CpuSet.from([...from].slice(0, count));

  it('gives each its own, none of those beside it, and the rest to all sharing ones', () => {
    fc.assert(
      fc.property(claims, fc.integer({ min: 0, max: 6 }), (list, more) => {
        const running = list.filter(({ kind }) => kind !== 'init');
        const own = running.reduce((sum, { amount }) => sum + (amount ?? 0), 0);
        const most = Math.max(0, ...list.map(({ amount }) => amount ?? 0));
        const all = CpuSet.from(Array.from({ length: own + most + more }, (_, i) => 2 * i));
        const { parts, pool } = partitionOf(all, list, lowest);
        const shares = sharesOf(all.size, list);
        expect(pool.size).toBe(all.size - own);
        for (const [i, { kind, amount }] of list.entries()) {
          const part = parts[i]!;
          expect(part.isSubsetOf(all)).toBe(true);
          expect(part.size).toBe(shares[i]);
          if (amount !== null) expect(part.size).toBe(amount);
          else if (kind !== 'init') expect(part).toEqual(pool);
          for (const [j, other] of list.entries()) {
            const isBeside =
              j < i &&
              other.amount !== null &&
              (other.kind === 'sidecar' || (other.kind === 'app' && kind === 'app'));
            if (isBeside) expect(part.intersects(parts[j]!)).toBe(false);
          }
        }
      }),
      { numRuns: budget({ all: 5000, usual: 300 }) },
    );
  });

  it('leaves nothing to the first sharing one if the others have everything, and never exceeds the total', () => {
    const sidecar = (amount: number | null) => ({ kind: 'sidecar' as const, amount });
    const app = (amount: number | null) => ({ kind: 'app' as const, amount });
    const init = { kind: 'init' as const, amount: null };
    expect(firstUnmet(4, [app(4), app(null)])).toBe(1);
    expect(firstUnmet(5, [app(4), app(null)])).toBe(-1);
    expect(firstUnmet(4, [sidecar(2), app(2)])).toBe(-1);
    expect(firstUnmet(4, [sidecar(null), app(4)])).toBe(0);
    expect(firstUnmet(4, [sidecar(4), init])).toBe(1);
    expect(firstUnmet(4, [init, sidecar(4)])).toBe(-1);
    expect(firstUnmet(4, [app(3), app(2)])).toBe(1);
    expect(firstUnmet(4, [sidecar(2), { kind: 'init', amount: 3 }, app(2)])).toBe(1);
    // CPUs of an init container are not exclusive to it.
    expect(firstUnmet(4, [{ kind: 'init', amount: 4 }, app(null)])).toBe(-1);
  });
});

const container = fc.record({
  kind: kinds,
  /** null: it shares. */
  cpu: fc.option(fc.integer({ min: 1, max: 5 })),
  mebibytes: fc.integer({ min: 1, max: 64 }),
});
type Container = typeof container extends fc.Arbitrary<infer T> ? T : never;

const podShape = fc.record({
  containers: fc
    .array(container, { minLength: 1, maxLength: 5 })
    .map(inOrder)
    .filter((list) => list.some(({ kind }) => kind === 'app')),
  spareCpu: fc.constantFrom(0, 0.5, 1, 1, 2, 3),
  spareMebibytes: fc.constantFrom(0, 64, 2048),
});
type PodShape = typeof podShape extends fc.Arbitrary<infer T> ? T : never;

const FULL = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
const OPTIONS: readonly object[] = [
  {},
  FULL,
  { cpuManagerPolicyOptions: { 'distribute-cpus-across-numa': true } },
  { cpuManagerPolicyOptions: { 'distribute-cpus-across-cores': true } },
  { cpuManagerPolicyOptions: { 'prefer-align-cpus-by-uncorecache': true } },
];
const POLICIES = ['best-effort', 'restricted', 'single-numa-node'] as const;

const most = (list: readonly number[]) => Math.max(0, ...list);
const sum = (list: readonly number[]) => list.reduce((all, each) => all + each, 0);

/** Enough for its containers, plus some to spare. */
function needed(containers: readonly Container[], of: (each: Container) => number): number {
  const running = containers.filter(({ kind }) => kind !== 'init').map(of);
  return Math.max(
    sum(running),
    most(containers.map(of)) + sum(containers.filter(({ kind }) => kind === 'sidecar').map(of)),
  );
}

// Without any a pod is not Guaranteed.
const totalCpu = ({ containers, spareCpu }: PodShape) =>
  needed(containers, (each) => each.cpu ?? 0) + spareCpu || 1;
const totalMebibytes = ({ containers, spareMebibytes }: PodShape) =>
  needed(containers, (each) => (each.cpu === null ? 0 : each.mebibytes)) + spareMebibytes || 1;

function podOf(uid: string, shape: PodShape): PodRequest {
  const containers = shape.containers.map(({ kind, cpu, mebibytes }, i) => ({
    name: `c${i}`,
    ...(kind === 'sidecar' && { restartPolicy: 'Always' }),
    ...(cpu !== null && { limits: { cpu, memory: mebibytes * MI } }),
  }));
  const apps = shape.containers.findIndex(({ kind }) => kind === 'app');
  const whole = { cpu: totalCpu(shape), memory: totalMebibytes(shape) * MI };
  return parsePod({
    uid,
    initContainers: containers.slice(0, apps),
    containers: containers.slice(apps),
    resources: { requests: whole, limits: whole },
  });
}

const MANAGED = {
  ...DEFAULT_SETTINGS,
  simulated: true,
  featureGates: { ...DEFAULT_SETTINGS.featureGates, PodLevelResourceManagers: true },
};

describe('a pod with pod-level resources', () => {
  let machines: Topology[];
  const GIVEN_MEMORY = 8 * GI;

  beforeAll(async () => {
    const random = fc.sample(irregularMachines, { numRuns: 30, seed: 20 });
    const regular = [
      'package:2 numa:1(memory=8GiB) l3:2 core:4 pu:2',
      'package:1 numa:3(memory=8GiB) core:4 pu:1',
      'package:2 numa:2(memory=8GiB) core:2 pu:3',
    ];
    machines = await Promise.all([
      ...random.map((json) =>
        discover({
          json: {
            ...json,
            nodes: json.nodes.map((node) => ({ ...node, memory: GIVEN_MEMORY, hugepages: [] })),
          },
        }),
      ),
      ...regular.map((synthetic) => discover({ synthetic })),
      machineOf([0, 1].map(() => ({ cpus: 8, memory: GIVEN_MEMORY }))),
    ]);
  });

  function questionOf(topology: Topology, state: Assignments, pod: PodRequest, options: object): Question {
    const { placement } = parseConfig({ topology, scope: 'pod', ...options });
    return {
      ...{ topology, state, providers: [], trialUid: '', now: 'now', dryRun: false, resources: new Map() },
      present: { online: topology.cpus, isolated: CpuSet.EMPTY },
      uid: pod.uid!,
      owner: { kind: 'persistent', uuid: 'ab', pid: null, command: null, cgroup: null, unknown: {} },
      request: { pod, placement, owner: 'persistent', enforcement: {}, isForCaller: false, wait: false },
    };
  }

  const cases = fc.record({
    machine: fc.nat(33),
    options: fc.constantFrom(...OPTIONS),
    policy: fc.constantFrom(...POLICIES),
    pods: fc.array(podShape, { minLength: 1, maxLength: 4 }),
  });

  it('is booked once, dealt out to its containers, kept on record, and given back', () => {
    const seen = { admitted: 0, empty: 0 };
    fc.assert(
      fc.property(cases, ({ machine, options, policy, pods }) => {
        const topology = machines[machine]!;
        const states = [emptyAssignments(MANAGED)];
        for (const [i, shape] of pods.entries()) {
          const state = states.at(-1)!;
          const request = podOf(`p${i}`, shape);
          const question = questionOf(topology, state, request, { ...options, policy });
          const decision = decide(question);
          const isFull = options === FULL;
          if (!decision.admitted) {
            if (decision.code === 'ERR_POD_POOL_EMPTY') {
              seen.empty++;
              expect(leavesNothing(shape)).toBe(true);
            }
            continue;
          }
          seen.admitted++;
          expect(leavesNothing(shape)).toBe(false);
          const { pod } = decision;
          const next = decision.next();
          checkParts(pod, shape, request);
          if (isFull)
            for (const each of pod.containers) expect(topology.wholeCores(each.cpus)).toEqual(each.cpus);
          expect(pod.booking!.cpus.isSubsetOf(freeCpus(state, question.present))).toBe(true);
          expect(exclusiveCpus(next)).toEqual(exclusiveCpus(state).union(cpusOf(pod)));
          expect(sharedPool(next, question.present).isEmpty).toBe(false);
          expect(sum(Object.values(next.memory).map(({ memory = 0 }) => memory))).toBe(
            sum(next.pods.flatMap((each) => memoryOf(each).map(({ bytes }) => bytes))),
          );
          expect(decodePod(JSON.parse(podText(pod)), 'pod')).toEqual(pod);
          states.push(next);
        }
        const last = states.at(-1)!;
        const gone = removePods(last, new Set(last.pods.map(({ uid }) => uid)));
        expect({ pods: gone.pods, memory: gone.memory }).toEqual({ pods: [], memory: {} });
        for (const { uid } of last.pods) {
          const without = removePods(last, new Set([uid]));
          expect(exclusiveCpus(without)).toEqual(exclusiveCpus(last).difference(cpusOf(findPod(last, uid)!)));
        }
      }),
      { numRuns: budget({ all: 20_000, usual: 250 }) },
    );
    expect(seen.admitted).toBeGreaterThan(budget({ all: 300, usual: 150 }));
    expect(seen.empty).toBeGreaterThan(budget({ all: 50, usual: 20 }));
  });
});

/** True if a container shares a resource that is used up, CPUs in whole or memory. */
function leavesNothing(shape: PodShape): boolean {
  const { containers } = shape;
  const isEmpty = (total: number, of: (each: Container) => number) => {
    const beside = (i: number) =>
      containers[i]!.kind === 'init'
        ? containers.slice(0, i).filter(({ kind }) => kind === 'sidecar')
        : containers.filter(({ kind }) => kind !== 'init');
    return containers.some(({ cpu }, i) => cpu === null && total <= sum(beside(i).map(of)));
  };
  const cpu = (each: Container) => each.cpu ?? 0;
  const memory = (each: Container) => (each.cpu === null ? 0 : each.mebibytes);
  const total = totalCpu(shape);
  return (Number.isInteger(total) && isEmpty(total, cpu)) || isEmpty(totalMebibytes(shape), memory);
}

function checkParts(pod: PodAssignment, { containers: shapes }: PodShape, { resources }: PodRequest): void {
  const { booking, containers } = pod;
  const { cpu, memory } = resources!.requests as { cpu: number; memory: number };
  const isWhole = cpu % 1000 === 0;
  expect(booking!.cpus.size).toBe(isWhole ? cpu / 1000 : 0);
  expect(sum(booking!.memory.map(({ bytes }) => bytes))).toBe(memory);
  const bytesOf = (each: ContainerAssignment) => sum(each.memory.map(({ bytes }) => bytes));
  let own = CpuSet.EMPTY;
  let [sidecars, bytes, besideBytes] = [CpuSet.EMPTY, 0, 0];
  for (const [i, each] of containers.entries()) {
    const { kind, cpu: count, mebibytes } = shapes[i]!;
    expect(each.cpus.isSubsetOf(booking!.cpus)).toBe(true);
    if (count === null) {
      if (kind !== 'init') continue;
      expect(each.cpus).toEqual(booking!.cpus.difference(sidecars));
      expect(bytesOf(each)).toBe(memory - besideBytes);
      continue;
    }
    expect(each.isolation).toBe(isWhole ? 'container' : 'host');
    expect(each.cpus.size).toBe(isWhole ? count : 0);
    expect(each.cpus.intersects(sidecars)).toBe(false);
    expect(bytesOf(each)).toBe(mebibytes * MI);
    if (kind === 'init') continue;
    expect(each.cpus.intersects(own)).toBe(false);
    own = own.union(each.cpus);
    bytes += mebibytes * MI;
    if (kind === 'sidecar') [sidecars, besideBytes] = [sidecars.union(each.cpus), bytes];
  }
  const pool = booking!.cpus.difference(own);
  for (const [i, each] of containers.entries()) {
    if (shapes[i]!.cpu !== null || shapes[i]!.kind === 'init') continue;
    expect(each.isolation).toBe(isWhole ? 'pod' : 'host');
    expect(each.cpus).toEqual(pool);
    expect(bytesOf(each)).toBe(memory - bytes);
  }
}
