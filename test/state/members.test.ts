// needs: nothing
// The members of a state, one by one: a wrong one is damage, and a missing one of older versions
// is none.
import { describe, expect, it } from 'vitest';
import { finish } from '../../lib/base/steps.js';
import { checkpointSteps } from '../../lib/state/format/checkpoint.js';
import { encodeCheckpoint } from '../../lib/state/format/journal.js';
import { decodePod } from '../../lib/state/format/pod-record.js';
import { thrownBy } from '../support/error-of.js';

const memory = [{ nodes: [0], type: 'memory', bytes: 4096 }];
const device = { id: '0000:00:01.0', nodes: [0] };

const container = {
  ...{ name: 'main', kind: 'app', started: true, request: { cpu: 1000, memory: 4096 } },
  ...{ isolation: 'pod', cpus: '1', held: '2', hint: { nodes: [0], preferred: true } },
  ...{ memory, devices: { nic: [device] } },
  reusable: { cpus: '', memory: [], devices: {} },
};

const target = { containers: [{ ...container, cpus: '3', held: '4' }] };

const POD = {
  ...{ uid: 'one', name: 'one', namespace: 'default', containers: [container] },
  ...{ resources: { requests: { cpu: 1000 }, limits: { cpu: 1000 } } },
  ...{ policy: 'static', scope: 'container', options: { 'full-pcpus-only': true } },
  owner: {
    ...{ kind: 'cgroup', uuid: 'ab', pid: 1, command: 'test' },
    cgroup: { path: '/a', device: '1', inode: '2', namespace: 'cgroup:[1]' },
  },
  ...{ mixed: 500, elastic: { min: 1, max: 2, weight: 100 } },
  quiet: {
    ...{ interrupts: true, workqueues: true, packets: false, idle: { maxLatency: 10 } },
    ...{ frequency: true, cache: { ways: 2 } },
  },
  movable: { maxPerHour: 2, noticeMs: 1000, exclude: [1] },
  moves: ['2026-01-01T00:00:00.000Z'],
  enforcement: { level: 'cpuset', target: '/a', memory: { main: 'EINVAL' } },
  upcoming: {
    ...{ container: 'main', cpus: '3', held: '4', by: 'cd' },
    move: { for: 'two', deadline: '2026-01-01T00:00:00.000Z', target, refusal: 'ERR_STATE_LOCKED' },
  },
  ...{ transfer: 'why', formerOwner: 'ef', admittedAt: '2026-01-01T00:00:00.000Z' },
};

const KUBELET = {
  pods: [
    {
      ...{ uid: 'k', namespace: 'default', name: 'k' },
      containers: [{ name: 'main', cpus: '5', memory, devices: { nic: ['0'] } }],
    },
  ],
  keeper: { kind: 'process', uuid: 'cd', pid: 2, command: 'agent', cgroup: null },
  ...{ since: '2026', updatedAt: '2026' },
};

const SETTING = {
  ...{ part: 'interrupts', path: '/proc/irq/1', identity: '1', original: '0', written: ['1'] },
  ...{ refusal: 'EPERM', isLeftover: true },
};

const STATE = {
  ...{ generation: 7, bootId: 'boot', writtenAt: '2026-01-01T00:00:00.000Z' },
  settings: {
    ...{ managedCPUs: '0-7', reservedSystemCPUs: '0', strictCPUReservation: false, isolatedCPUs: '6-7' },
    ...{ reservedMemory: { 0: { memory: 1024 } }, cgroupRoot: '/root', kubeletVersion: 'v1.36' },
    ...{ featureGates: { SomeGate: true }, simulated: true },
  },
  cpus: [[0, 0, 0, 0]],
  pods: [POD],
  memory: { 0: { memory: 4096 } },
  lastCpus: [{ name: 'past', cpus: '3' }],
  ...{ kubelet: KUBELET, quiet: { settings: [SETTING] } },
};

type Path = readonly string[];
const decode = (value: unknown) => finish(checkpointSteps(value as typeof STATE, undefined, decodePod));

/** The state with another value at a path; undefined: without that member. */
function withValue(path: Path, value: unknown): unknown {
  const copy = structuredClone(STATE);
  let at = copy as Record<string, any>;
  for (const key of path.slice(0, -1)) at = at[key];
  if (value === undefined) delete at[path.at(-1)!];
  else at[path.at(-1)!] = value;
  return copy;
}

/** The paths to all members. */
function pathsIn(value: unknown, path: Path = []): Path[] {
  if (typeof value !== 'object' || value === null) return [path];
  const below = Object.entries(value).flatMap(([key, each]) => pathsIn(each, [...path, key]));
  return path.length === 0 ? below : [path, ...below];
}

const PATHS = pathsIn(STATE).filter((path) => valueAt(path) !== null);

function valueAt(path: Path): unknown {
  let at: any = STATE;
  for (const key of path) at = at[key];
  return at;
}

describe('a state', () => {
  it('is read with all its members', () => {
    const again = JSON.parse(encodeCheckpoint(decode(STATE)).split('\n')[1]!);
    expect(again).toMatchObject(STATE);
  });

  it.each(PATHS.map((path) => [path.join('.'), path] as const))(
    'is damaged if %s is of a wrong type',
    (_, path) => {
      const value = valueAt(path);
      for (const wrong of typeof value === 'object' ? [7, 'x'] : [{ a: {} }, [[]]])
        expect(thrownBy(() => decode(withValue(path, wrong)))).toMatchObject({ code: 'ERR_STATE_CORRUPT' });
    },
  );

  it.each([
    ...['namespace', 'resources', 'mixed', 'elastic', 'quiet', 'movable', 'moves', 'upcoming'],
    ...['transfer', 'formerOwner'],
  ])('of an older version may lack %s of a grant', (name) => {
    const [pod] = decode(withValue(['pods', '0', name], undefined)).assignments.pods;
    expect(pod![name as keyof typeof pod] ?? undefined).toBeUndefined();
  });

  it('has no record of the kubelet if that is null', () => {
    expect(decode(withValue(['kubelet'], null)).assignments.kubelet).toBeNull();
    expect(decode(withValue(['quiet'], null)).assignments.quiet).toBeNull();
  });

  it.each<[string, Path, unknown]>([
    ['isolated CPUs', ['settings', 'isolatedCPUs'], null],
    ['a cgroup root', ['settings', 'cgroupRoot'], null],
    ['the kubelet’s record', ['kubelet'], null],
    ['changed settings', ['quiet'], null],
    ['names', ['lastCpus'], []],
  ])('of an older version may lack %s', (_, path, value) => {
    let at: any = decode(withValue(path, undefined)).assignments;
    for (const key of path) at = at[key];
    expect(at).toEqual(value);
  });

  it('of an older version has an isolation that the CPUs imply', () => {
    const isolation = (cpus: string) => {
      const other = withValue(['pods', '0', 'containers', '0', 'cpus'], cpus) as typeof STATE;
      delete (other.pods[0]!.containers[0] as Partial<typeof container>).isolation;
      return decode(other).assignments.pods[0]!.containers[0]!.isolation;
    };
    expect([isolation('1'), isolation('')]).toEqual(['container', 'host']);
  });

  it.each<[string, Path, unknown]>([
    ['a row of three numbers', ['cpus', '0'], [0, 0, 0]],
    ['a node that cannot be', ['memory'], { 99999999: { memory: 1 } }],
    ['a cgroup without its identity', ['pods', '0', 'owner', 'cgroup'], null],
    ['a share of a cache without an amount', ['pods', '0', 'quiet', 'cache'], {}],
    [
      'a move to other CPUs than it holds for that',
      ['pods', '0', 'upcoming', 'move', 'target', 'containers', '0', 'cpus'],
      '5',
    ],
    [
      'a move of another container',
      ['pods', '0', 'upcoming', 'move', 'target', 'containers', '0', 'name'],
      'b',
    ],
  ])('is damaged by %s', (_, path, value) => {
    expect(thrownBy(() => decode(withValue(path, value)))).toMatchObject({ code: 'ERR_STATE_CORRUPT' });
  });

  it('has a share of a cache as a percentage, too', () => {
    const cache = decode(withValue(['pods', '0', 'quiet', 'cache'], { percent: 20 })).assignments.pods[0]!
      .quiet!.cache;
    expect(cache).toEqual({ percent: 20 });
  });

  it('has the housekeeping CPUs of a quiet grant, if there are any', () => {
    const at = ['pods', '0', 'quiet', 'housekeeping'];
    expect(decode(withValue(at, 2)).assignments.pods[0]!.quiet!.housekeeping).toBe(2);
    expect(() => decode(withValue(at, 'all'))).toThrow(/quiet\.housekeeping/);
  });

  it('has the CPUs and the memory of a pod as a whole, of which its containers have theirs', () => {
    const booking = { cpus: '1-2', held: '2', memory, shares: [memory] };
    const pod = (changes: object) =>
      decode(withValue(['pods', '0'], { ...POD, upcoming: null, booking: { ...booking, ...changes } }))
        .assignments.pods[0]!;
    expect(pod({}).booking).toMatchObject({ memory });
    expect(pod({}).containers[0]!.memory).toEqual(memory);
    expect(pod({ shares: [] }).containers[0]!.memory).toEqual([]);
    for (const wrong of [{ cpus: '2' }, { held: '' }, { shares: 7 }, { cpus: 7 }, { memory: 7 }])
      expect(
        thrownBy(() => pod(wrong)),
        JSON.stringify(wrong),
      ).toMatchObject({ code: 'ERR_STATE_CORRUPT' });
  });
});
