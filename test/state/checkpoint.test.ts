// needs: nothing
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Assignments } from '../../lib/account/assignments.js';
import {
  type BookedMemory,
  bookMemory,
  type MemoryBlock,
  memoryBlocks,
  NOTHING_BOOKED,
  releaseMemory,
} from '../../lib/account/booked-memory.js';
import type { ContainerAssignment, PodAssignment } from '../../lib/account/pod-assignment.js';
import {
  DEFAULT_GATES,
  DEFAULT_VERSION,
  FEATURE_GATES,
  KUBELET_VERSIONS,
  type KubeletVersion,
} from '../../lib/base/kubelet-features.js';
import { CpuSet, NodeSet } from '../../lib/index.js';
import type { Checkpoint } from '../../lib/state/format/checkpoint.js';
import { decodeCheckpoint, encodeCheckpoint } from '../../lib/state/format/journal.js';
import {
  decodeOwnerFile,
  END_LENGTH,
  encodeOwnerFile,
  endLine,
  generationIn,
  OWNER_FORMAT,
  releaseLine,
} from '../../lib/state/format/owner-file.js';
import { isNewer } from '../../lib/state/format/sealed-json.js';
import { thrownBy } from '../support/error-of.js';
import { kubeletRecord, kubeletRecords } from '../support/kubelet-records.js';
import { quietRecords, quietRequests } from '../support/quiet-records.js';

const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const cpus = fc.uniqueArray(fc.nat({ max: 300 }), { maxLength: 6 }).map((ids) => CpuSet.from(ids));
const nodes = fc.uniqueArray(fc.nat({ max: 20 }), { maxLength: 3 });
const unknown = fc.dictionary(fc.constantFrom('future', 'toString', 'x-y'), fc.jsonValue());
// Nodes that share memory share all of it.
const group = fc.constantFrom([0], [1, 2], [3], [4, 9, 5].sort());
const bytes = fc.nat(2 ** 40);
const block = fc.record({ nodes: group, type: text, bytes });
const booked = fc.dictionary(fc.nat(20).map(String), fc.dictionary(text, bytes, { maxKeys: 2 }), {
  maxKeys: 2,
});
const device = fc.record({ id: text, nodes: fc.option(nodes) });
const devices = fc.dictionary(text, fc.array(device, { maxLength: 2 }));

const container: fc.Arbitrary<ContainerAssignment> = fc.record({
  name: text,
  kind: fc.constantFrom('init', 'sidecar', 'app'),
  started: fc.boolean(),
  request: fc.dictionary(text, fc.nat()),
  isolation: fc.constant('host'),
  cpus: fc.constant(CpuSet.EMPTY),
  held: fc.constant(CpuSet.EMPTY),
  hint: fc.record({ nodes: fc.option(nodes.map((ids) => NodeSet.from(ids))), preferred: fc.boolean() }),
  memory: fc.array(block, { maxLength: 2 }),
  devices,
  reusable: fc.record({
    cpus: fc.constant(CpuSet.EMPTY),
    memory: fc.array(block, { maxLength: 1 }),
    devices,
  }),
  unknown,
});

const amounts = fc.dictionary(text, fc.nat());

const movable = fc.record({
  maxPerHour: fc.option(fc.nat()),
  noticeMs: fc.nat(),
  exclude: nodes.map((ids) => NodeSet.from(ids)),
});

const booking = fc.option(
  fc.record({
    cpus: fc.constant(CpuSet.EMPTY),
    held: fc.constant(CpuSet.EMPTY),
    memory: fc.array(block, { maxLength: 2 }),
  }),
);

const move = fc.record({
  for: text,
  deadline: text,
  target: fc.option(fc.record({ booking, containers: fc.array(container, { minLength: 1, maxLength: 2 }) })),
  refusal: fc.option(text),
});

const anyPod: fc.Arbitrary<PodAssignment> = fc.record({
  uid: text,
  name: text,
  containers: fc.array(container, { minLength: 1, maxLength: 3 }),
  resources: fc.option(fc.record({ requests: amounts, limits: amounts }), { nil: undefined }),
  booking,
  policy: text,
  scope: text,
  options: fc.dictionary(text, fc.boolean()),
  owner: fc
    .record({
      kind: fc.constantFrom('process', 'cgroup', 'persistent'),
      uuid: fc.uuid(),
      pid: fc.option(fc.nat()),
      command: fc.option(text),
      cgroup: fc.record({ path: text, device: text, inode: text, namespace: text }),
      unknown,
    })
    .map((owner) => (owner.kind === 'cgroup' ? owner : { ...owner, cgroup: null })),
  quiet: fc.option(quietRequests, { nil: undefined }),
  movable: fc.option(movable, { nil: undefined }),
  moves: fc.option(fc.array(text, { maxLength: 2 }), { nil: undefined }),
  enforcement: fc.record({
    level: fc.constantFrom('recorded', 'members', 'cpuset', 'partition', 'isolated'),
    target: fc.option(text),
    memory: fc.option(fc.dictionary(text, text, { minKeys: 1 }), { nil: undefined }),
  }),
  upcoming: fc.option(
    fc.record(
      {
        container: text,
        cpus: fc.constant(CpuSet.EMPTY),
        held: fc.constant(CpuSet.EMPTY),
        by: fc.uuid(),
        move,
      },
      { requiredKeys: ['container', 'cpus', 'held', 'by'] },
    ),
  ),
  transfer: fc.option(text),
  formerOwner: fc.option(fc.uuid()),
  admittedAt: text,
  unknown,
});

type Change = Pick<PodAssignment, 'upcoming' | 'former'>;

// The same containers in other places.
function goingTo({ booking, containers, upcoming }: PodAssignment, hand: CpuSet): Change {
  if (!upcoming) return { upcoming };
  const move = upcoming.move;
  const place = (c: ContainerAssignment, n: number): ContainerAssignment => ({
    ...(move?.target?.containers[n] ?? c),
    ...{ name: c.name, cpus: n === 0 ? hand : CpuSet.EMPTY },
    isolation: n === 0 && !hand.isEmpty ? 'container' : 'host',
  });
  const target = move?.target && {
    booking: booking && { ...booking, cpus: hand },
    containers: containers.map(place),
  };
  return {
    upcoming: { ...upcoming, cpus: hand, ...(move && { move: { ...move, target: target ?? null } }) },
    ...(move && !target && { former: { cpus: CpuSet.EMPTY, held: CpuSet.EMPTY } }),
  };
}

const pod = anyPod.map((each) => ({
  ...each,
  ...goingTo(each, CpuSet.EMPTY),
}));

// Each device belongs to one pod.
function withOwnDevices(each: PodAssignment, i: number): PodAssignment {
  const own = (list: ContainerAssignment['devices']) =>
    Object.fromEntries(
      Object.entries(list).map(([name, ids]) => [name, ids.map((d) => ({ ...d, id: `${i}:${d.id}` }))]),
    );
  return { ...each, containers: each.containers.map((c) => ({ ...c, devices: own(c.devices) })) };
}

// Somewhere on its nodes each.
function bookAll(pods: readonly PodAssignment[]): BookedMemory {
  const spread = (each: MemoryBlock) => (node: number) =>
    node === each.nodes.at(-1) ? each.bytes : Math.floor(each.bytes / 3);
  return memoryBlocks(pods).reduce((sum, each) => bookMemory(sum, each, spread(each)), NOTHING_BOOKED);
}

// CPUs are dealt out afterwards, so that no two pods have the same.
function deal(pods: PodAssignment[], hands: CpuSet[]): PodAssignment[] {
  let left = CpuSet.parse('0-300');
  return pods.map((each, i) => {
    const hand = (hands[i] ?? CpuSet.EMPTY).intersection(left);
    left = left.difference(hand);
    const own = { cpus: hand, isolation: hand.isEmpty ? ('host' as const) : ('container' as const) };
    const shared = hand.isEmpty ? {} : { cpus: hand, isolation: 'pod' as const };
    const other = each.booking ? shared : { held: hand };
    return {
      ...each,
      containers: each.containers.map((c, n) => ({ ...c, ...(n === 0 ? own : other) })),
      booking: each.booking && { ...each.booking, cpus: hand },
      ...goingTo(each, hand),
    };
  });
}

const assignments: fc.Arbitrary<Assignments> = fc
  .record({
    settings: fc.record({
      managedCPUs: fc.option(cpus),
      reservedSystemCPUs: cpus,
      strictCPUReservation: fc.boolean(),
      isolatedCPUs: fc.option(cpus),
      reservedMemory: booked,
      cgroupRoot: fc.option(fc.constantFrom('/numalign', '/a/b')),
      kubeletVersion: fc.constantFrom(...KUBELET_VERSIONS),
      featureGates: fc.record(
        Object.fromEntries(FEATURE_GATES.map((gate) => [gate, fc.boolean()])) as Record<
          (typeof FEATURE_GATES)[number],
          fc.Arbitrary<boolean>
        >,
      ),
      simulated: fc.boolean(),
      unknown,
    }),
    cpus: fc.array(fc.tuple(fc.nat(), fc.nat(), fc.nat(), fc.nat()), { maxLength: 4 }),
    pods: fc.uniqueArray(pod, { selector: ({ uid }) => uid, maxLength: 3 }),
    lastCpus: fc.array(fc.record({ name: text, cpus }), { maxLength: 2 }),
    kubelet: fc.option(kubeletRecords),
    quiet: fc.option(quietRecords),
    unknown,
    hands: fc.array(cpus, { maxLength: 3 }),
  })
  .map(({ hands, pods, ...rest }) => ({
    ...rest,
    pods: deal(pods, hands).map(withOwnDevices),
    memory: bookAll(pods),
  }));

const checkpoint: fc.Arbitrary<Checkpoint> = fc.record({
  generation: fc.nat({ max: 2 ** 31 - 1 }).map((number) => number * 2 ** 21),
  bootId: text,
  writtenAt: text,
  assignments,
});

const SAMPLE: Checkpoint = {
  generation: 7,
  bootId: 'boot',
  writtenAt: '2024-05-01T10:00:00.000Z',
  assignments: {
    settings: {
      managedCPUs: null,
      reservedSystemCPUs: CpuSet.of(0),
      strictCPUReservation: false,
      isolatedCPUs: null,
      reservedMemory: NOTHING_BOOKED,
      cgroupRoot: null,
      kubeletVersion: DEFAULT_VERSION,
      featureGates: DEFAULT_GATES[DEFAULT_VERSION],
      simulated: false,
      unknown: {},
    },
    cpus: [[0, 0, 0, 0]],
    pods: [],
    memory: NOTHING_BOOKED,
    lastCpus: [],
    kubelet: null,
    quiet: null,
    unknown: {},
  },
};

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

/** A file with a text in it replaced, and a correct checksum. */
function changed(file: string, from: string, to: string): Buffer {
  expect(file).toContain(from);
  const lines = file.replaceAll(from, to).split('\n').slice(0, -1);
  const seal = (line: string) => {
    const body = line.replace(/,"checksum":[^,]*$/, '');
    return `${body},"checksum":"crc32:${crc32(body).toString(16).padStart(8, '0')}"}\n`;
  };
  const [head, ...others] = lines.map(seal);
  // The first line of a state file has the length of the second.
  return Buffer.from(
    [seal(head!.replace(/"bytes":\d+/, `"bytes":${Buffer.byteLength(others[0]!)}`)), ...others].join(''),
  );
}

function codeOf(bytes: Buffer): string | undefined {
  try {
    decodeCheckpoint(bytes);
  } catch (error) {
    return (error as { code: string }).code;
  }
  return undefined;
}

describe('an owner’s file', () => {
  it('is refused if its generation is too large for more commits', () => {
    const { bootId, generation, assignments } = SAMPLE;
    const header = { uuid: 'ab', kind: 'persistent', pid: null, command: null, cgroup: null } as const;
    const { settings } = assignments;
    const file = encodeOwnerFile({ ...header, bootId, generation, settings, kubelet: null, pods: [] });
    const at = (number: number) => changed(file, '"generation":7', `"generation":${number}`);
    expect(decodeOwnerFile(at(8)).generation).toBe(8);
    expect(thrownBy(() => decodeOwnerFile(at(2 ** 52)))).toMatchObject({ code: 'ERR_STATE_CORRUPT' });
  });

  it('has a version that older packages refuse while its process keeps the kubelet’s record', () => {
    const { bootId, generation, assignments } = SAMPLE;
    const header = { uuid: 'ab', kind: 'process', pid: 1, command: 'a', cgroup: null } as const;
    const versionWith = (kubelet: Assignments['kubelet'], kubeletVersion: KubeletVersion = 'v1.36') => {
      const settings = { ...assignments.settings, kubeletVersion };
      const file = encodeOwnerFile({ ...header, bootId, generation, settings, kubelet, pods: [] });
      return JSON.parse(file.split('\n')[0]!).version;
    };
    expect([versionWith(null), versionWith(kubeletRecord('3'))]).toEqual([2, 3]);
    expect(versionWith(null, 'v1.37')).toBe(4);
  });

  it('is damaged, and not of a newer version, if it has this version', () => {
    const damaged = Buffer.from('{"format":"numalign-owner","version":4,');
    expect(isNewer(OWNER_FORMAT, damaged)).toBe(false);
    expect(isNewer(OWNER_FORMAT, Buffer.from('{"format":"numalign-owner","version":5,'))).toBe(true);
  });
});

describe('the generation of an owner’s file', () => {
  const header = { uuid: 'ab', kind: 'persistent', pid: null, command: null, cgroup: null } as const;
  const own = (each: PodAssignment): PodAssignment => ({ ...each, owner: { ...each.owner, uuid: 'ab' } });

  it('is read from its last lines', () => {
    fc.assert(
      fc.property(checkpoint, fc.nat(), ({ generation, bootId, assignments }, later) => {
        const { settings, kubelet, pods } = assignments;
        const file = encodeOwnerFile({
          ...{ ...header, bootId, generation, settings, kubelet },
          pods: pods.map(own),
        });
        expect(plain(decodeOwnerFile(Buffer.from(file)).kubelet)).toEqual(plain(kubelet));
        expect(generationIn(Buffer.from(file))).toBe(generation);
        expect(generationIn(Buffer.from(file), true)).toBe(generation);
        const grown = `${file.slice(0, -END_LENGTH)}${releaseLine(later, 'x')}${endLine(2 + pods.length)}`;
        expect(generationIn(Buffer.from(grown))).toBe(decodeOwnerFile(Buffer.from(grown)).generation);
        expect(generationIn(Buffer.from(grown), true)).toBe(generationIn(Buffer.from(grown)));
      }),
    );
  });

  it('is unknown if these are damaged', () => {
    const { bootId, generation, assignments } = SAMPLE;
    const { settings } = assignments;
    const file = encodeOwnerFile({ ...header, bootId, generation, settings, kubelet: null, pods: [] });
    expect(generationIn(Buffer.from(file.replace('"boot"', '"moot"')))).toBeUndefined();
    expect(generationIn(Buffer.from(file.slice(0, END_LENGTH)))).toBeUndefined();
    expect(generationIn(Buffer.alloc(0))).toBeUndefined();
  });
});

describe('the state file', () => {
  it('says where it is damaged', () => {
    const file = encodeCheckpoint({
      ...SAMPLE,
      assignments: { ...SAMPLE.assignments, lastCpus: [{ name: 'a', cpus: CpuSet.of(3) }] },
    });
    const wrong = thrownBy(() => decodeCheckpoint(changed(file, '"cpus":"3"', '"cpus":"x"')));
    expect(wrong?.message).toMatch(/^the state file is damaged: lastCpus\[0\]: cpus is not a list of CPUs/);
  });

  it('reads back what was written, with members that this version does not know', () => {
    fc.assert(
      fc.property(checkpoint, (value) => {
        const file = encodeCheckpoint(value);
        const again = decodeCheckpoint(Buffer.from(file));
        expect(encodeCheckpoint(again)).toBe(file);
        expect(plain(again)).toEqual(plain(value));
      }),
    );
  });

  it('takes memory of any type, whatever its name', () => {
    const [odd, plain] = [
      { nodes: [0], type: '__proto__', bytes: 3 },
      { nodes: [0], type: 'memory', bytes: 3 },
    ] as const;
    const booked = bookMemory(
      bookMemory(NOTHING_BOOKED, odd, () => 3),
      plain,
      () => 3,
    );
    expect(JSON.stringify(booked)).toBe('{"0":{"__proto__":3,"memory":3}}');
    expect(JSON.stringify(releaseMemory(booked, plain))).toBe('{"0":{"__proto__":3}}');
    expect(JSON.stringify(releaseMemory(booked, odd))).toBe('{"0":{"memory":3}}');
  });

  it('is JSON that other programs can read', () => {
    const lines = encodeCheckpoint(SAMPLE).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { format: 'numalign-state', version: 4, generation: 7 },
      { line: 'state', generation: 7, settings: { reservedSystemCPUs: '0' } },
    ]);
  });

  const versionWith = (more: Partial<Assignments>) => {
    const settings = { ...SAMPLE.assignments.settings, kubeletVersion: 'v1.36' as const };
    const assignments = { ...SAMPLE.assignments, settings, ...more };
    return JSON.parse(encodeCheckpoint({ ...SAMPLE, assignments }).split('\n')[0]!).version;
  };

  it('has a version that older packages refuse while the kubelet has records', () => {
    expect([versionWith({}), versionWith({ kubelet: kubeletRecord('3') })]).toEqual([2, 3]);
  });

  it('has a version that older packages refuse while kernel settings are changed', () => {
    expect(versionWith({ quiet: { settings: [], unknown: {} } })).toBe(3);
  });

  it('has a version that older packages refuse while it follows a kubelet that they do not know', () => {
    expect(versionWith({ settings: { ...SAMPLE.assignments.settings, kubeletVersion: 'v1.37' } })).toBe(4);
  });

  it('is refused with any bit flipped', () => {
    const file = Buffer.from(encodeCheckpoint(SAMPLE));
    for (let at = 0; at < file.length; at++) {
      for (let bit = 0; bit < 8; bit++) {
        const damaged = Buffer.from(file);
        damaged[at]! ^= 1 << bit;
        expect(codeOf(damaged), `byte ${at}, bit ${bit}`).toBe('ERR_STATE_CORRUPT');
      }
    }
  });

  it('is refused if it is cut short anywhere, or is something else', () => {
    const file = Buffer.from(encodeCheckpoint(SAMPLE));
    for (let length = 0; length < file.length; length++)
      expect(codeOf(file.subarray(0, length))).toBe('ERR_STATE_CORRUPT');
    for (const other of ['{}', 'null', '\0'.repeat(100), '{"policyName":"static"}'])
      expect(codeOf(Buffer.from(other))).toBe('ERR_STATE_CORRUPT');
  });

  it('is refused if unknown members are too deep to be written again', () => {
    const [own] = fc.sample(pod, 1);
    const sample = {
      ...SAMPLE,
      assignments: {
        ...SAMPLE.assignments,
        pods: [{ ...own!, containers: [], booking: null, upcoming: null }],
      },
    };
    const [file, depth] = [encodeCheckpoint(sample), 200_000];
    const deep = `"deep":${'['.repeat(depth)}${']'.repeat(depth)}`;
    for (const before of ['"generation":', '"simulated":', '"admittedAt":', '"pid":'])
      expect(codeOf(changed(file, before, `${deep},${before}`)), before).toBe('ERR_STATE_CORRUPT');
    expect(codeOf(changed(file, '"generation":', '"some":[[[]]],"generation":'))).toBeUndefined();
  });

  it('is refused if its generation is too large for more commits', () => {
    const file = encodeCheckpoint(SAMPLE);
    const code = (generation: number) =>
      codeOf(changed(file, '"generation":7', `"generation":${generation}`));
    expect(code(2 ** 52 - 1)).toBeUndefined();
    for (const generation of [2 ** 52, 2 ** 53 - 1]) expect(code(generation)).toBe('ERR_STATE_CORRUPT');
  });

  it('is left alone if a newer version wrote it, whatever its checksum', () => {
    const newer = '{"format":"numalign-state","version":5,"everything":"else"}\n';
    expect(codeOf(Buffer.from(newer))).toBe('ERR_STATE_VERSION');
  });

  it.each(['1.5', '-1', '"1"', 'null', '1e300'])('is refused if a whole number is %s', (value) => {
    const file = encodeCheckpoint({
      ...SAMPLE,
      assignments: { ...SAMPLE.assignments, memory: { 0: { memory: 8192 } } },
    });
    expect(codeOf(changed(file, '8192', value))).toBe('ERR_STATE_CORRUPT');
  });

  it('is refused if two pods hold one CPU, though the checksum is right', () => {
    fc.assert(
      fc.property(pod, pod, (a, b) => {
        const holding = (each: PodAssignment, uid: string) => ({
          ...each,
          uid,
          containers: each.containers.map((c) => ({ ...c, cpus: CpuSet.of(3) })),
          booking: each.booking && { ...each.booking, cpus: CpuSet.of(3) },
        });
        const value = {
          ...SAMPLE,
          assignments: { ...SAMPLE.assignments, pods: [holding(a, 'a'), holding(b, 'b')] },
        };
        expect(codeOf(Buffer.from(encodeCheckpoint(value)))).toBe('ERR_STATE_CORRUPT');
      }),
      { numRuns: 20 },
    );
  });

  it('is refused if a pod is about to move to a place that it does not hold', () => {
    const request = { ...fc.sample(pod, 1)[0]!, booking: null };
    const [container1] = fc.sample(container, 1);
    const at = (cpus: string) => [{ ...container1!, name: 'main', cpus: CpuSet.parse(cpus) }];
    const code = (containers: ContainerAssignment[]) => {
      const move = { for: 'asker', deadline: '', target: { booking: null, containers }, refusal: null };
      const held = { cpus: CpuSet.parse('4-5'), held: CpuSet.EMPTY };
      const upcoming = { container: 'main', ...held, by: request.owner.uuid, move };
      const pods = [{ ...request, containers: at('0-1'), upcoming, former: undefined }];
      const value = { ...SAMPLE, assignments: { ...SAMPLE.assignments, pods, memory: bookAll(pods) } };
      return codeOf(Buffer.from(encodeCheckpoint(value)));
    };
    expect(code(at('4-5'))).toBeUndefined();
    expect(code(at('4,6'))).toBe('ERR_STATE_CORRUPT');
    expect(code([])).toBe('ERR_STATE_CORRUPT');
    expect(code([...at('4-5'), ...at('')])).toBe('ERR_STATE_CORRUPT');
  });

  it('is refused if two pods hold one device, or the booked memory differs from the pods’', () => {
    const [first] = fc.sample(container, 1);
    const plain = {
      ...first!,
      memory: [],
      devices: {},
      reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
    };
    const [shape] = fc.sample(pod, 1);
    const code = (memory: BookedMemory, ...own: Partial<ContainerAssignment>[]) => {
      const pods = own.map((part, i) => ({
        ...shape!,
        uid: String(i),
        ...{ booking: null, upcoming: null },
        containers: [{ ...plain, ...part }],
      }));
      return codeOf(
        Buffer.from(encodeCheckpoint({ ...SAMPLE, assignments: { ...SAMPLE.assignments, pods, memory } })),
      );
    };
    const gpu = (id: string) => ({ devices: { 'example.com/gpu': [{ id, nodes: null }] } });
    expect(code({}, gpu('a'), gpu('b'))).toBeUndefined();
    expect(code({}, gpu('a'), gpu('a'))).toBe('ERR_STATE_CORRUPT');
    const memory = (bytes: number, ...on: number[]) => ({ memory: [{ nodes: on, type: 'memory', bytes }] });
    expect(code({ 0: { memory: 3 }, 1: { memory: 4 } }, memory(5, 0, 1), memory(2, 0, 1))).toBeUndefined();
    expect(code({ 0: { memory: 3 } }, memory(5, 0, 1))).toBe('ERR_STATE_CORRUPT');
    expect(code({ 0: { memory: 5 }, 2: { memory: 1 } }, memory(5, 0, 1))).toBe('ERR_STATE_CORRUPT');
    expect(code({ 0: { memory: 7 } }, memory(5, 0, 1), memory(2, 0))).toBe('ERR_STATE_CORRUPT');
  });
});
