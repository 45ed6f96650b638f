// needs: nothing
// Fewer free hugepages in the kernel than on record.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { emptyAssignments } from '../../lib/account/assignments.js';
import { type Decision, decide } from '../../lib/decision/decision.js';
import type { FreeHugepages } from '../../lib/decision/draft/memory-draft.js';
import { flagsOf, flagsOfEach } from '../../lib/decision/flags/flags.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import type { Rejection } from '../../lib/decision/rejection.js';
import { CpuSet } from '../../lib/index.js';
import { parseConfig } from '../../lib/input/config.js';
import type { PodSpec } from '../../lib/input/pods/pod-spec.js';
import { parseAdmit } from '../../lib/input/requests/request.js';
import type { AdmitOptions } from '../../lib/input/requests/request-options.js';
import { budget } from '../support/budget.mjs';
import { GI, MI, machineOf } from '../support/memory-machine.js';
import { guaranteed } from '../support/simulated.js';

const HUGE = 'hugepages-2Mi';
const PAGE = 2 * MI;
const NODES = 3;
const PAGES = 8;
const topology = await machineOf(
  Array.from({ length: NODES }, () => ({ cpus: 4, memory: GI, hugepages: { 2048: PAGES } })),
);
const present = { online: topology.cpus, isolated: CpuSet.EMPTY };
const { placement } = parseConfig({});
const EMPTY = emptyAssignments(DEFAULT_SETTINGS);

const bytes = (count: number | undefined) => (count === undefined ? undefined : count * PAGE);
const kernelHas = (...pages: (number | undefined)[]): FreeHugepages => promised(undefined, ...pages);

/** This many on all nodes together without a reservation of a mapping. */
const promised = (unreserved: number | undefined, ...pages: (number | undefined)[]): FreeHugepages =>
  new Map([[HUGE, { byNode: pages.map(bytes), unreserved: bytes(unreserved) }]]);

function ask(
  pages: readonly number[],
  hugepages: FreeHugepages | undefined,
  options: AdmitOptions = {},
  state = EMPTY,
): Decision | Rejection {
  const containers = pages.map((count, i) => guaranteed(`c${i}`, { cpu: 1, [HUGE]: count * PAGE }));
  return decideOn({ containers }, hugepages, options, state);
}

function decideOn(
  pod: PodSpec,
  hugepages: FreeHugepages | undefined,
  options: AdmitOptions = {},
  state = EMPTY,
): Decision | Rejection {
  return decide({
    ...{ topology, present, state, resources: new Map(), providers: [], hugepages },
    request: parseAdmit(pod, options, placement),
    owner: { kind: 'persistent', uuid: 'ab', pid: null, command: null, cgroup: null, unknown: {} },
    ...{ uid: `pod-${state.pods.length}`, trialUid: '', now: '', dryRun: true },
  });
}

const nodesOf = (answer: Decision | Rejection) =>
  answer.admitted
    ? answer.pod.containers.map(({ memory }) => memory.find(({ type }) => type === HUGE)!.nodes)
    : null;

it('the hints avoid nodes where the kernel has too few free', () => {
  expect(nodesOf(ask([4], undefined))).toEqual([[0]]);
  const answer = ask([4], kernelHas(3, 3, 4), { policy: 'single-numa-node' });
  expect(nodesOf(answer)).toEqual([[2]]);
  expect(
    answer.offers[0]!.offered.find(({ resource }) => resource === HUGE)!.hints.toArray(),
  ).not.toContainEqual(expect.objectContaining({ nodes: expect.objectContaining({ first: 0, size: 1 }) }));
});

it('a request beyond the free pages of all nodes is refused as a shortage, with the kernel’s numbers', () => {
  const answer = ask([4], kernelHas(1, 1, 1), { policy: 'none' }) as Rejection;
  expect(answer).toMatchObject({
    admitted: false,
    code: 'ERR_INSUFFICIENT_MEMORY',
    reason: 'UnexpectedAdmissionError',
    facts: { free: { 0: { [HUGE]: PAGE }, 1: { [HUGE]: PAGE }, 2: { [HUGE]: PAGE } } },
  });
  expect(answer.message).toContain('numalign counts no more hugepages as free than the kernel has');
  expect(answer.explanation.text).toContain('0: 2 MiB of 16 MiB, 1: 2 MiB of 16 MiB, 2: 2 MiB of 16 MiB');
  expect(ask([4], kernelHas(1, 1, 1), { policy: 'restricted' })).toMatchObject({
    code: 'ERR_TOPOLOGY_AFFINITY',
  });
});

it('the record counts for a node that the kernel does not report', () => {
  expect(nodesOf(ask([4], kernelHas(0, undefined, 0)))).toEqual([[1]]);
});

it('reservations of mappings are free on no node', () => {
  expect(ask([4], promised(3, 8, 8, 8), { policy: 'none' })).toMatchObject({
    code: 'ERR_INSUFFICIENT_MEMORY',
    facts: { free: { 0: { [HUGE]: 3 * PAGE }, 1: { [HUGE]: 3 * PAGE }, 2: { [HUGE]: 3 * PAGE } } },
  });
  expect(nodesOf(ask([4], promised(4, 8, 8, 8)))).toEqual([[0]]);
  // The second container gets what the first one leaves.
  expect(ask([2, 2], promised(3, 8, 8, 8)).admitted).toBe(false);
  expect(ask([2, 2], promised(4, 8, 8, 8)).admitted).toBe(true);
});

it('reservations of mappings are not free on several nodes together either', () => {
  expect(nodesOf(ask([12], promised(12, 8, 8, 8), { policy: 'best-effort' }))).toEqual([[0, 1]]);
  for (const policy of ['none', 'best-effort', 'restricted'] as const)
    expect(ask([12], promised(11, 8, 8, 8), { policy }).admitted).toBe(false);
});

it('pages of an init container count besides unreserved ones', () => {
  const pod = {
    initContainers: [guaranteed('first', { cpu: 1, [HUGE]: 2 * PAGE })],
    containers: [guaranteed('main', { cpu: 1, [HUGE]: 4 * PAGE })],
  };
  const decided = (unreserved: number) => decideOn(pod, promised(unreserved, 8, 8, 8));
  expect(decided(4).admitted).toBe(true);
  expect(decided(3).admitted).toBe(false);
});

it('booked but unused pages do not exceed the record', () => {
  const first = ask([6], undefined) as Decision;
  // No page is used yet.
  expect(nodesOf(ask([4], kernelHas(8, 8, 8), {}, first.next()))).toEqual([[1]]);
});

it('no node gives a pod more than the free and unreserved pages, and the option only ever rejects', () => {
  let refused = 0;
  const counts = fc.array(fc.integer({ min: 1, max: PAGES }), { minLength: 1, maxLength: 3 });
  const free = fc.tuple(...Array.from({ length: NODES }, () => fc.nat(PAGES)));
  const policy = fc.constantFrom(
    'none' as const,
    'best-effort' as const,
    'restricted' as const,
    'single-numa-node' as const,
  );
  fc.assert(
    fc.property(
      counts,
      counts,
      free,
      fc.nat(NODES * PAGES),
      policy,
      (others, pages, kernel, most, policy) => {
        const before = ask(others, undefined);
        const state = before.admitted ? before.next() : EMPTY;
        const strict = ask(pages, promised(most, ...kernel), { policy }, state);
        if (!strict.admitted) refused += ask(pages, undefined, { policy }, state).admitted ? 1 : 0;
        else {
          expect(ask(pages, undefined, { policy }, state).admitted).toBe(true);
          const { memory } = strict.next();
          let all = 0;
          for (let node = 0; node < NODES; node++) {
            const own = (memory[node]?.[HUGE] ?? 0) - (state.memory[node]?.[HUGE] ?? 0);
            expect(own).toBeLessThanOrEqual(kernel[node]! * PAGE);
            all += own;
          }
          expect(all).toBeLessThanOrEqual(most * PAGE);
        }
      },
    ),
    { numRuns: budget({ all: 10_000, usual: 400 }) },
  );
  expect(refused).toBeGreaterThan(0);
});

it('is a flag of the grants with pages there, as long as there are fewer', () => {
  const { next } = ask([3], undefined) as Decision;
  const state = next();
  const [pod] = state.pods;
  const flags = (kernel: FreeHugepages) =>
    flagsOf(pod!, { state, topology, resources: new Map(), present, hugepages: kernel });
  // 5 of 8 pages should be free.
  expect(flags(kernelHas(4, 8, 8))).toMatchObject([
    { code: 'HUGEPAGES_TAKEN', resource: HUGE, nodes: [0], free: 4 * PAGE, expected: 5 * PAGE },
  ]);
  expect(
    flagsOfEach({ state, topology, resources: new Map(), present, hugepages: kernelHas(4, 8, 8) })(pod!),
  ).toEqual(flags(kernelHas(4, 8, 8)));
  expect(flags(promised(4, 8, 8, 8))).toMatchObject([{ free: 4 * PAGE, expected: 5 * PAGE }]);
  for (const fine of [
    promised(5, 8, 8, 8),
    kernelHas(5, 0, 0),
    kernelHas(8, 8, 8),
    kernelHas(undefined, 8, 8),
    new Map(),
  ])
    expect(flags(fine)).toEqual([]);
});
