// needs: modules
// Lines that the addon merges say the same as when they are read one by one, and so do errors.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { NumalignError } from '../../lib/base/errors.js';
import { native } from '../../lib/base/native.js';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { encodeCheckpoint, type Journal, readJournal, withLines } from '../../lib/state/format/journal.js';
import { sealLine } from '../../lib/state/format/sealed-json.js';
import { budget } from '../support/budget.mjs';
import { makeStateDir } from '../support/state-dir.js';

const BLOCK = { nodes: [0], type: 'memory', bytes: 8 };

const CONTAINER = {
  ...{ name: 'main', kind: 'app', started: true, request: { cpu: 1000 }, cpus: '', held: '' },
  hint: { nodes: [0], preferred: true },
  ...{ devices: {}, memory: [] as object[], reusable: { cpus: '', memory: [], devices: {} } },
};

const POD = {
  ...{ policy: 'none', scope: 'container', options: { 'hold-sibling': false } },
  owner: { kind: 'process', uuid: 'ab', pid: 7, command: 'node é', cgroup: null as unknown },
  enforcement: { level: 'recorded', target: null as unknown },
  ...{ upcoming: null, transfer: null, formerOwner: null, admittedAt: 'then' },
};

// A pod as text, with what only some pods have, in other orders, or wrong.
const CHANGES: readonly ((pod: Record<string, any>) => object)[] = [
  ...[
    (pod: object) => pod,
    (pod: object) => pod,
    ({ uid, name, ...pod }: Record<string, any>) => ({ uid, name, namespace: 'default', ...pod }),
  ],
  (pod) => ({ ...pod, containers: [...pod.containers, { ...CONTAINER, name: 'more', isolation: 'pod' }] }),
  (pod) => ({ ...pod, owner: { ...POD.owner, kind: 'persistent', pid: null, command: null } }),
  (pod) => ({ ...pod, containers: [{ ...pod.containers[0], hint: { nodes: null, preferred: false } }] }),
  (pod) => ({
    ...pod,
    containers: [{ ...pod.containers[0], devices: { gpu: [{ id: pod.uid, nodes: [1] }] } }],
  }),
  (pod) => ({ ...pod, containers: [{ ...pod.containers[0], memory: [BLOCK] }] }),
  (pod) => Object.fromEntries(Object.entries(pod).reverse()),
  (pod) => ({ ...pod, mixed: 500, unheard: { of: [1, 'é'] } }),
  (pod) => ({ ...pod, quiet: null, resources: { requests: { cpu: 1 }, limits: {} } }),
  (pod) => ({ ...pod, transfer: 'token', formerOwner: 'cd' }),
  (pod) => ({ ...pod, enforcement: { level: 'members', fallenFrom: 'partition', target: 'x' } }),
  (pod) => ({ ...pod, enforcement: { level: 'sealed', target: null } }),
  (pod) => ({ ...pod, owner: { ...POD.owner, kind: 'cgroup' } }),
  (pod) => ({ ...pod, owner: { ...POD.owner, uuid: '../x' } }),
  (pod) => ({ ...pod, containers: [{ ...pod.containers[0], cpus: '3-1' }] }),
  (pod) => ({ ...pod, containers: [{ ...pod.containers[0], kind: 'ephemeral' }] }),
  (pod) => ({ ...pod, containers: [{ ...pod.containers[0], request: { cpu: -1 } }] }),
  (pod) => ({ ...pod, name: 1 }),
];

const uids = fc.constantFrom(...'abcdef');

// Most are right, so that histories are long.
const pods = fc
  .tuple(uids, fc.integer({ min: -40, max: CHANGES.length - 1 }), fc.boolean())
  .map(([uid, change, hasCpu]) => {
    const cpus = hasCpu ? `${uid.charCodeAt(0)}` : '';
    const pod = { uid, name: uid, containers: [{ ...CONTAINER, cpus }], ...POD };
    return { uid, pod: CHANGES[Math.max(0, change)]!(pod) };
  });

interface Step {
  readonly pods: readonly { readonly uid: string; readonly pod: object }[];
  readonly released: readonly string[];
  readonly named: readonly string[];
  readonly more: object;
}

const steps: fc.Arbitrary<Step> = fc.record({
  pods: fc.array(pods, { maxLength: 2 }),
  released: fc.uniqueArray(uids, { maxLength: 2 }),
  named: fc.array(fc.constantFrom('x', 'y', 'z'), { maxLength: 2 }),
  more: fc.oneof(
    { weight: 20, arbitrary: fc.constant({}) },
    fc.constantFrom<object>(
      ...[{ lastCpus: [{ name: 'w', cpus: '1' }] }, { unheard: [1] }, { cpus: [[0, 0, 0, 0]] }],
      ...[
        { generation: 1 },
        { line: 'other' },
        { memory: { 0: { memory: 1 } } },
        { gone: ['a'] },
        { cpus: 1 },
      ],
    ),
  ),
});

const EMPTY = readJournal(
  Buffer.from(
    (() => {
      const settings = { managedCPUs: null, reservedSystemCPUs: '', strictCPUReservation: false };
      const more = { reservedMemory: {}, simulated: true, kubeletVersion: 'v1.36' };
      const members = { line: 'state', generation: 1, bootId: 'boot', writtenAt: 'then' };
      const state = sealLine(
        JSON.stringify({ ...members, settings: { ...settings, ...more }, cpus: [], pods: [], memory: {} }),
      );
      const head = { format: 'numalign-state', version: 2, generation: 1, follows: null };
      return sealLine(JSON.stringify({ ...head, bytes: state.length })) + state;
    })(),
  ),
);

/** Lines that mostly release what is on record, and book what pods have. */
function linesOf(list: readonly Step[]): string[] {
  const present = new Map<string, any>();
  return list.map(({ pods, released, named, more }, i) => {
    const gone = released.filter((uid) => present.delete(uid));
    for (const { uid, pod } of pods) present.set(uid, pod);
    const blocks = [...present.values()].flatMap(({ containers }) =>
      containers.flatMap((each: any) => each.memory),
    );
    const memory = blocks.length > 0 ? { 0: { memory: 8 * blocks.length } } : {};
    const change = {
      ...{ line: 'change', generation: i + 2, bootId: 'boot', writtenAt: `at ${i}`, memory },
      ...(pods.length > 0 && { pods: pods.map(({ pod }) => pod) }),
      ...(gone.length > 0 && { released: gone }),
      ...(named.length > 0 && { named: named.map((name) => ({ name, cpus: '1' })) }),
    };
    return sealLine(JSON.stringify({ ...change, ...more }));
  });
}

afterEach(() => void vi.restoreAllMocks());

/** What a reading gives: all of it, or the error. */
function found(read: () => Journal): unknown {
  try {
    const { checkpoint, place } = read();
    return { checkpoint, place, text: encodeCheckpoint(checkpoint) };
  } catch (error) {
    if (!(error instanceof NumalignError)) throw error;
    return { code: error.code, message: error.message };
  }
}

function oneByOne<T>(read: () => T): T {
  const merging = vi.spyOn(native, 'mergeLines').mockReturnValue(undefined);
  try {
    return read();
  } finally {
    merging.mockRestore();
  }
}

function knownAfter(lines: string): Journal {
  try {
    return oneByOne(() => withLines(EMPTY, Buffer.from(lines)));
  } catch {
    return EMPTY;
  }
}

it('lines say the same merged and one by one, whatever is in them', () => {
  let [merged, wholes] = [0, 0];
  const numRuns = budget({ all: 30_000, usual: 60 });
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 8 }), fc.nat(8), fc.nat(60), (list, at, cut) => {
      const lines = linesOf(list);
      const known = lines.slice(0, at).join('');
      const rest = Buffer.from(lines.slice(at).join(''));
      const bytes = cut < rest.length ? rest.subarray(0, rest.length - cut) : rest;
      const begin = knownAfter(known);
      const expected = oneByOne(() => found(() => withLines(begin, bytes)));
      expect(found(() => withLines(begin, bytes))).toStrictEqual(expected);
      if (native.mergeLines(bytes, begin.checkpoint.generation)) merged++;
      const state = encodeCheckpoint(begin.checkpoint);
      if (native.mergeLines(Buffer.from(state.slice(state.indexOf('\n') + 1)))?.[0]) wholes++;
      const whole = Buffer.from(state + bytes.toString());
      expect(found(() => readJournal(whole))).toStrictEqual(oneByOne(() => found(() => readJournal(whole))));
    }),
    { numRuns },
  );
  expect(merged).toBeGreaterThan(numRuns / 4);
  expect(wholes).toBeGreaterThan(numRuns / 2);
});

const ODD_CPUS = ['0-3', '1,3-5', '3,1', '1-1', '01', '1,1', ' 1', '1-', '3-1', '70', '65536'];

/** The JSON of a value, written in another way at some of the places where that can be. */
function spelled(value: unknown, places: ReadonlySet<number>): string {
  let place = 0;
  const isOther = () => places.has(place++);
  const gap = () => (isOther() ? ' \t' : '');
  const escaped = (text: string) =>
    `"\\u00${text.charCodeAt(0).toString(16)}${JSON.stringify(text.slice(1)).slice(1)}`;
  const write = (each: unknown): string => {
    if (Array.isArray(each)) return `[${gap()}${each.map(write).join(',')}]`;
    if (typeof each === 'string' && /^[ -~]/.test(each) && isOther()) return escaped(each);
    if (typeof each !== 'object' || each === null)
      return `${JSON.stringify(each)}${typeof each === 'number' && isOther() ? 'e0' : ''}${gap()}`;
    const members = Object.entries(each).flatMap(([name, of]) => {
      // The last one counts.
      const before = isOther() ? [`${write(name)}:${isOther() ? '{}' : 'null'}`] : [];
      return [...before, `${write(name)}${gap()}:${write(of)}`];
    });
    return `{${members.join(',')}${gap()}}`;
  };
  return write(value);
}

it('a grant says the same merged and alone, however its JSON is written', () => {
  const numRuns = budget({ all: 100_000, usual: 300 });
  let rows = 0;
  const cpus = fc.oneof({ weight: 9, arbitrary: fc.constant('') }, fc.constantFrom(...ODD_CPUS));
  const places = fc.uniqueArray(fc.nat(400), { maxLength: 6 }).map((each) => new Set(each));
  fc.assert(
    fc.property(fc.array(pods, { minLength: 1, maxLength: 3 }), cpus, places, (list, held, places) => {
      const all = list.map(({ pod }) => {
        const { containers = [], ...others } = pod as Record<string, any>;
        return { ...others, containers: containers.map((each: object) => ({ ...each, held })) };
      });
      const head = '"line":"change","generation":2,"bootId":"boot","writtenAt":"then","memory":{}';
      const bytes = Buffer.from(sealLine(`{${head},"pods":${spelled(all, places)}}`));
      const expected = oneByOne(() => found(() => withLines(EMPTY, bytes)));
      expect(found(() => withLines(EMPTY, bytes))).toStrictEqual(expected);
      const [change] = native.mergeLines(bytes, 1) ?? [];
      if (change && JSON.parse(change).pods.rows.some((row: unknown) => typeof row === 'string')) rows++;
    }),
    { numRuns },
  );
  expect(rows).toBeGreaterThan(numRuns / 8);
});

it('a torn line in the middle of a long file is damage', () => {
  const lines = Array.from({ length: 2000 }, (_, i) => {
    const pod = { uid: `${i}`, name: `${i}`, containers: [CONTAINER], ...POD };
    return sealLine(
      JSON.stringify({ line: 'change', generation: i + 2, bootId: 'b', writtenAt: '', pods: [pod] }),
    );
  });
  const { checkpoint } = withLines(EMPTY, Buffer.from(lines.join('')));
  expect(checkpoint.assignments.pods.map(({ uid }) => uid)).toEqual(Object.keys(lines));
  const torn = Buffer.from(lines.with(500, lines[500]!.replace('"a', '"b')).join(''));
  expect(found(() => withLines(EMPTY, torn))).toMatchObject({ code: 'ERR_STATE_CORRUPT' });
});

it('ordinary grants are plain, with memory and devices too', async () => {
  const topology = await discover({ synthetic: 'numa:2(memory=8GiB) core:4 pu:1' });
  const manager = await openManager({ topology, stateDir: makeStateDir('/dev/shm') });
  onTestFinished(() => manager.close());
  manager.registerDevices('example.com/gpu', [{ id: 'a', numaNodes: [0] }]);
  await manager.acquire({ cpu: 1 });
  await manager.acquire({ cpu: 2, memory: '1Gi', name: 'gateway' });
  const requests = { cpu: 1, memory: '1Gi', 'example.com/gpu': 1 };
  await manager.admit({ name: 'pod', containers: [{ name: 'app', requests, limits: requests }] });
  const lines = readFileSync(join(manager.stateDir, 'state.json')).toString().split('\n').slice(2);
  const { rows } = JSON.parse(native.mergeLines(Buffer.from(lines.join('\n')), 1)![0]).pods;
  expect(rows.filter((row: unknown) => typeof row === 'object')).toEqual([]);
  expect(rows).toHaveLength(3 * 8);
});
