// needs: nothing
// Parts of a grant: decision and record, on simulated machines.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { emptyAssignments } from '../../lib/account/assignments.js';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { runningCpus, threadShares } from '../../lib/account/pod-holdings.js';
import { PERSISTENT_OWNER } from '../../lib/admission/placed-pod.js';
import { decide } from '../../lib/decision/decision.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { type AcquireOptions, CpuSet, type Grant, type Manager, openManager } from '../../lib/index.js';
import { parseConfig } from '../../lib/input/config.js';
import { parseAcquire } from '../../lib/input/requests/request.js';
import { decodePod } from '../../lib/state/format/pod-record.js';
import { podText } from '../../lib/state/format/pod-text.js';
import { budget } from '../support/budget.mjs';
import { errorOf, thrownBy } from '../support/error-of.js';
import { irregularMachines } from '../support/random-machine.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

// CPUs 0 and 1 are a core, and so on; 0-7 are node 0.
const MACHINE = 'package:2 [numa(memory=8GiB)] core:4 pu:2';
const WHOLE = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };

const shown = ({ cpus, parts, sharedCpus, held }: Grant) => ({
  cpus: String(cpus),
  parts: Object.fromEntries(Object.entries(parts).map(([name, of]) => [name, String(of)])),
  shared: String(sharedCpus),
  ...(held.isEmpty ? {} : { held: String(held) }),
});

async function acquired(options: AcquireOptions, manager?: Manager): Promise<Grant> {
  return (manager ?? (await simulate(MACHINE))).acquire(options);
}

describe('parts of a grant', () => {
  it.each<[string, AcquireOptions, object]>([
    [
      'are taken in their order, and leave the rest',
      { cpu: 4, parts: { main: 1, io: 1 } },
      { cpus: '0-3', parts: { main: '0', io: '1' }, shared: '2-3' },
    ],
    [
      'are by best fit: a whole core before the halves of two',
      { cpu: 5, parts: { one: 1, core: 2 } },
      { cpus: '0-4', parts: { one: '4', core: '0-1' }, shared: '2-3' },
    ],
    [
      'are whole cores where a grant is',
      { cpu: 6, parts: { a: 2 }, ...WHOLE },
      { cpus: '0-5', parts: { a: '0-1' }, shared: '2-5' },
    ],
    [
      'are spread over NUMA nodes where a grant is',
      { cpu: 12, parts: { a: 10 }, cpuManagerPolicyOptions: { 'distribute-cpus-across-numa': true } },
      { cpus: '0-5,8-13', parts: { a: '0-4,8-12' }, shared: '5,13' },
    ],
    [
      'have the siblings of their CPUs held',
      { cpu: 3, parts: { a: 1 }, smt: 'hold-sibling' },
      { cpus: '0,2,4', parts: { a: '0' }, shared: '2,4', held: '1,3,5' },
    ],
    ['are none where none are asked for', { cpu: 2, parts: {} }, { cpus: '0-1', parts: {}, shared: '0-1' }],
  ])('%s', async (_, options, expected) => {
    expect(shown(await acquired(options))).toEqual(expected);
  });

  it('are on record as exclusive containers of a pod that is booked as a whole', async () => {
    const manager = await simulate(MACHINE);
    const asked = { cpu: 4, memory: '1Gi', smt: 'hold-sibling', policy: 'single-numa-node' } as const;
    const { uid, availableParallelism } = await acquired({ ...asked, parts: { io: 1 } }, manager);
    expect(availableParallelism).toBe(3);
    const { containers } = manager.pod(uid);
    const has = containers.map(({ name, isolation, cpus, held, memory }) => [
      ...[name, isolation, String(cpus), String(held)],
      memory.length,
    ]);
    expect(has).toEqual([
      ['io', 'container', '0', '1', 0],
      ['.shared', 'pod', '2,4,6', '3,5,7', 1],
    ]);
    expect(containers.map(({ hint }) => String(hint.nodes))).toEqual(['0', '0']);
    const [info] = manager.grants();
    expect([String(info!.booking!.cpus), String(info!.booking!.held)]).toEqual(['0,2,4,6', '1,3,5,7']);
    expect(info!.memory).toEqual([{ nodes: [0], type: 'memory', bytes: 2 ** 30 }]);
    expect(String(manager.sharedPool())).toBe('8-15');
    await manager.release(uid);
    expect(String(manager.sharedPool())).toBe('0-15');
  });

  it('are known to a process that opens the state, takes the grant over, or looks it up by id', async () => {
    const topology = await discover({ synthetic: MACHINE });
    const stateDir = makeStateDir();
    const manager = await openManager({ topology, stateDir });
    const asked = { cpu: 3, parts: { main: 1 } };
    const [kept, given] = [
      await manager.acquire({ ...asked, owner: 'persistent' }),
      await manager.acquire(asked),
    ];
    const { token, accepted } = await given.transfer();
    const taken = await manager.takeOver(token);
    expect(await accepted).toBe(true);
    expect(shown(taken)).toEqual({ cpus: '3-5', parts: { main: '3' }, shared: '4-5' });
    manager.close();
    const again = await openManager({ topology, stateDir });
    const grant = again.grant(kept.uid);
    expect(shown(grant)).toEqual({ cpus: '0-2', parts: { main: '2' }, shared: '0-1' });
    expect(grant.part('main').toJSON()).toEqual({
      name: 'main',
      cpus: CpuSet.of(2),
      numaNodes: grant.numaNodes,
    });
    await grant.release();
    again.close();
  });

  it('are the same again for the next grant with the name', async () => {
    const manager = await simulate(MACHINE);
    const asked = { cpu: 4, name: 'gateway', parts: { main: 1, io: 2 } };
    const other = await manager.acquire({ cpu: 1 });
    const first = await manager.acquire(asked);
    const before = shown(first);
    await first.release();
    await other.release();
    expect(shown(await manager.acquire(asked))).toEqual(before);
  });

  it.each<[string, unknown, string, unknown]>([
    ['as many as the grant has', { a: 2, b: 2 }, 'parts', { a: 2, b: 2 }],
    ['no CPU', { a: 0 }, 'parts.a', 0],
    ['half a CPU', { a: 0.5 }, 'parts.a', 0.5],
    ['an amount in words', { a: '1' }, 'parts.a', '1'],
    ['a name that no container can have', { '.shared': 1 }, 'parts', '.shared'],
    ['a list', ['a'], 'parts', ['a']],
    ['a Map, of which an object shows nothing', new Map([['a', 1]]), 'parts', new Map([['a', 1]])],
    ['half a core where a grant is of whole ones', { a: 2, b: 1 }, 'parts.b', 1],
  ])('with %s are refused, and nothing changes', async (what, parts, option, value) => {
    const manager = await simulate(MACHINE);
    const options = { cpu: 4, parts, ...(what.startsWith('half a core') && WHOLE) } as AcquireOptions;
    const error = await errorOf(() => manager.acquire(options));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option, value } });
    expect(manager.grants()).toEqual([]);
  });

  it('of one CPU are refused with what is valid', async () => {
    const error = await errorOf(() => acquired({ cpu: 1, parts: { a: 1 } }));
    expect(error.message).toContain('left out with one CPU');
  });

  it('that the grant lacks are refused, with the valid ones', async () => {
    const grant = await acquired({ cpu: 3, parts: { main: 1, io: 1 } });
    expect(thrownBy(() => grant.part('disk'))).toMatchObject({
      code: 'ERR_UNKNOWN_PART',
      details: { value: 'disk', valid: ['main', 'io'] },
    });
    for (const name of ['.shared', ''])
      expect(thrownBy(() => grant.part(name))).toMatchObject({ code: 'ERR_UNKNOWN_PART' });
    const plain = await acquired({ cpu: 1 });
    expect(thrownBy(() => plain.part('main'))).toMatchObject({ details: { valid: [] } });
  });

  it('keep their grant from being resized', async () => {
    const grant = await acquired({ cpu: 3, parts: { main: 1 } });
    expect(await errorOf(() => grant.resize({ cpu: 4 }))).toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      message: expect.stringContaining('parts'),
    });
    expect(shown(grant).cpus).toBe('0-2');
  });

  it('are disjoint, of their sizes, and within the CPUs of the grant, on any machine', async () => {
    const machines = await Promise.all(
      fc.sample(irregularMachines, { numRuns: 40, seed: 20 }).map((json) => discover({ json })),
    );
    const options = fc.constantFrom<Partial<AcquireOptions>>(
      ...[{}, WHOLE, { smt: 'hold-sibling' as const }, { policy: 'single-numa-node' as const }],
      { cpuManagerPolicyOptions: { 'distribute-cpus-across-numa': true } },
      { cpuManagerPolicyOptions: { 'prefer-align-cpus-by-uncorecache': true } },
    );
    const sizes = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 });
    const rests = fc.integer({ min: 1, max: 4 });
    const seen = { given: 0, refused: 0 };
    fc.assert(
      fc.property(fc.constantFrom(...machines), options, sizes, rests, (topology, how, counts, rest) => {
        const cpu = counts.reduce((sum, count) => sum + count, rest);
        const parts = Object.fromEntries(counts.map((count, i) => [`part-${i}`, count]));
        const plain = placed(topology, { cpu, ...how });
        const pod = placed(topology, { cpu, parts, ...how });
        if (!pod) {
          seen.refused++;
          // Whole cores of uneven sizes may not add up.
          expect(plain === undefined || how === WHOLE).toBe(true);
          return;
        }
        seen.given++;
        expect(pod.booking).toEqual({
          cpus: runningCpus(plain!),
          held: plain!.containers[0]!.held,
          memory: [],
        });
        const [{ cpus: shared }, ...own] = threadShares(pod);
        expect(own.map(({ part, cpus }) => [part, cpus.size])).toEqual(Object.entries(parts));
        expect(shared.size).toBe(rest);
        expect(pod.containers.map(({ request }) => request)).toEqual(
          [...counts, rest].map((count) => ({ cpu: count * 1000 })),
        );
        const all = [shared, ...own.map(({ cpus }) => cpus)];
        expect(all.reduce((a, b) => a.union(b))).toEqual(pod.booking!.cpus);
        if (how === WHOLE) for (const set of all) expect(topology.wholeCores(set)).toEqual(set);
        const held = pod.containers.map((container) => container.held);
        expect(held.reduce((a, b) => a.union(b))).toEqual(pod.booking!.held);
        expect(decodePod(JSON.parse(podText(pod)), '')).toEqual(pod);
      }),
      { numRuns: budget({ all: 3000, usual: 300 }) },
    );
    expect(Math.min(seen.given, seen.refused)).toBeGreaterThan(20);
  });
});

/** The grant on an empty machine; undefined: a rejection. */
function placed(topology: Topology, options: AcquireOptions): PodAssignment | undefined {
  const decision = decide({
    ...{ topology, state: emptyAssignments({ ...DEFAULT_SETTINGS, simulated: true }), providers: [] },
    ...{ trialUid: '', now: 'now', dryRun: false, resources: new Map(), uid: 'grant' },
    present: { online: topology.cpus, isolated: CpuSet.EMPTY },
    owner: { ...PERSISTENT_OWNER, uuid: 'ab' },
    request: parseAcquire(options, parseConfig({ topology }).placement),
  });
  return decision.admitted ? decision.pod : undefined;
}
