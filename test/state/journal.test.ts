// needs: agents
// The state as a journal: a line for each commit, read as it grows.

import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Assignments } from '../../lib/account/assignments.js';
import type { ContainerAssignment, PodAssignment } from '../../lib/account/pod-assignment.js';
import { DEFAULT_GATES, DEFAULT_VERSION } from '../../lib/base/kubelet-features.js';
import { native } from '../../lib/base/native.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, openManager } from '../../lib/index.js';
import { JournalFollower } from '../../lib/state/files/journal-follower.js';
import type { Checkpoint } from '../../lib/state/format/checkpoint.js';
import {
  decodeCheckpoint,
  encodeCheckpoint,
  readJournal,
  withLines,
} from '../../lib/state/format/journal.js';
import { sealLine, sealText } from '../../lib/state/format/sealed-json.js';
import { changeText } from '../../lib/state/format/state-change.js';
import { Ledger } from '../../lib/state/ledger.js';
import { Agent } from '../support/agent.js';
import { kubeletRecord, kubeletRecords } from '../support/kubelet-records.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf, ownerMembersOf } from '../support/state-text.js';

const MACHINE = 'numa:2(memory=8GiB) core:8 pu:1';

async function open(stateDir = makeStateDir('/dev/shm')): Promise<Manager> {
  const topology = await discover({ synthetic: MACHINE });
  const manager = await openManager({ topology, stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

const fileOf = ({ stateDir }: Pick<Manager, 'stateDir'>) => join(stateDir, 'state.json');
const linesOf = (manager: Manager) => readFileSync(fileOf(manager), 'utf8').trimEnd().split('\n');
const inodeOf = (manager: Manager) => statSync(fileOf(manager)).ino;
const plain = (value: unknown) => JSON.parse(JSON.stringify(value));
const expectSame = (a: unknown, b: unknown) => expect(plain(a)).toEqual(plain(b));

/** Adds and removes pods until the file is rewritten, `times` times. */
async function fill(manager: Manager, times: number, each: () => void = () => {}): Promise<void> {
  for (let inode = inodeOf(manager), left = times; left > 0; ) {
    const grant = await manager.acquire({ cpu: 1, owner: 'persistent', name: 'x'.repeat(200) });
    each();
    await grant.release();
    each();
    if (inodeOf(manager) === inode) continue;
    inode = inodeOf(manager);
    left--;
  }
}

describe('a commit', () => {
  it('is one more line, which names only the changes', async () => {
    const manager = await open();
    await manager.acquire({ cpu: 1, owner: 'persistent', name: 'stays' });
    const before = linesOf(manager);
    const grant = await manager.acquire({ cpu: 2, name: 'comes', memory: '1Gi' });
    const after = linesOf(manager);
    expect(after.slice(0, -1)).toEqual(before);
    const { line, generation, pods, memory, ...others } = JSON.parse(after.at(-1)!);
    expect([line, generation]).toEqual(['change', manager.generation()]);
    expect(pods.map(({ uid }: { uid: string }) => uid)).toEqual([grant.uid]);
    expect(memory).toEqual({ 0: { memory: 2 ** 30 } });
    expect(Object.keys(others).sort()).toEqual(['bootId', 'checksum', 'writtenAt']);
    await grant.release();
    expect(JSON.parse(linesOf(manager).at(-1)!)).toMatchObject({
      released: [grant.uid],
      named: [{ name: 'comes', cpus: String(grant.cpus) }],
    });
  });

  it('that follows many is written as a whole file, which is as short as the state itself', async () => {
    const manager = await open();
    await manager.acquire({ cpu: 1, owner: 'persistent', name: 'stays' });
    await fill(manager, 1);
    expect(linesOf(manager).length).toBeLessThan(5);
    expect(membersOf(manager.stateDir).pods).toMatchObject([{ name: 'stays' }]);
    expect(readFileSync(join(manager.stateDir, 'state.copy.json'))).toEqual(readFileSync(fileOf(manager)));
  });

  it('that is the first of a process merges a quarter as many', async () => {
    const manager = await open();
    const { stateDir } = manager;
    await manager.acquire({ cpu: 1, owner: 'persistent', name: 'stays' });
    while (statSync(fileOf(manager)).size < 2 ** 16 + 2 ** 12) {
      const grant = await manager.acquire({ cpu: 1, owner: 'persistent', name: 'x'.repeat(200) });
      await grant.release();
    }
    expect(linesOf(manager).length).toBeGreaterThan(50);
    const program = new Agent();
    await program.tell('open', { stateDir, simulate: MACHINE });
    await program.tell('acquire', { cpu: 1, name: 'comes' });
    expect(linesOf(manager).length).toBeLessThan(5);
    expect(membersOf(stateDir).pods).toMatchObject([{ name: 'stays' }, { name: 'comes' }]);
    await program.tell('acquire', { cpu: 1 });
    expect(linesOf(manager).length).toBeGreaterThan(1);
  });

  it('is in the copy too', async () => {
    const manager = await open();
    for (let i = 0; i < 3; i++) await manager.acquire({ cpu: 1 });
    expect(readFileSync(join(manager.stateDir, 'state.copy.json'))).toEqual(readFileSync(fileOf(manager)));
  });

  it('after an unfinished one cuts that off, and finds no damage', async () => {
    const manager = await open();
    await manager.acquire({ cpu: 1, name: 'first' });
    const half = linesOf(manager).at(-1)!.slice(0, 100);
    appendFileSync(fileOf(manager), half);
    expect(manager.grants()).toHaveLength(1);
    await manager.acquire({ cpu: 1, name: 'second' });
    expect(membersOf(manager.stateDir).pods).toMatchObject([{ name: 'first' }, { name: 'second' }]);
    expect(readFileSync(fileOf(manager), 'utf8')).not.toContain(`${half}{`);
    expect(Ledger.open(manager.stateDir).recoveries).toEqual([]);
  });
});

describe('a reader', () => {
  it('knows every generation, even if the file is rewritten meanwhile', async () => {
    const manager = await open();
    const folder = native.Folder.open(manager.stateDir, false, 0o700, -1);
    const [every, some] = [new JournalFollower(folder), new JournalFollower(folder)];
    let looks = 0;
    await fill(manager, 3, () => {
      const found = every.look();
      if (found.kind !== 'good') throw new Error(found.kind);
      expectSame(found.checkpoint, decodeCheckpoint(readFileSync(fileOf(manager))));
      looks++;
      if (looks % 7 === 0) expectSame(some.look(), found);
    });
    every.forget();
    some.forget();
  });

  it('keeps unchanged pods as the same objects, even across a new file', async () => {
    const manager = await open();
    await manager.acquire({ cpu: 1, owner: 'persistent', name: 'stays' });
    const folder = native.Folder.open(manager.stateDir, false, 0o700, -1);
    const follower = new JournalFollower(folder);
    const first = () => {
      const found = follower.look();
      return found.kind === 'good' ? found.checkpoint.assignments.pods[0] : undefined;
    };
    const pod = first();
    expect(pod?.name).toBe('stays');
    await fill(manager, 2, () => expect(first()).toBe(pod));
    follower.forget();
  });

  it('returns the same without a change, and reads nothing', async () => {
    const manager = await open();
    const follower = new JournalFollower(native.Folder.open(manager.stateDir, false, 0o700, -1));
    const found = follower.look();
    expect(follower.look()).toBe(found);
    follower.forget();
  });

  it('notices a change in a part of the file that it has read already', async () => {
    const manager = await open();
    await manager.acquire({ cpu: 1, owner: 'persistent', name: 'gateway' });
    const follower = new JournalFollower(native.Folder.open(manager.stateDir, false, 0o700, -1));
    expect(follower.look().kind).toBe('good');
    writeFileSync(fileOf(manager), readFileSync(fileOf(manager), 'utf8').replace('gateway', 'getaway'));
    expect(follower.look()).toMatchObject({ kind: 'damaged', why: expect.stringContaining('damaged') });
    follower.forget();
  });
});

// ---- laws

const podNames = fc.uniqueArray(fc.constantFrom(...'abcdefghij'), { maxLength: 8 });
const steps = fc.array(fc.record({ names: podNames, seed: fc.nat(3), named: fc.boolean() }), {
  minLength: 1,
  maxLength: 8,
});

function podOf(uid: string, cpu: number, seed: number): PodAssignment {
  const reusable = { cpus: CpuSet.EMPTY, memory: [], devices: {} };
  const hint = { nodes: null, preferred: true };
  const container: ContainerAssignment = {
    ...{ name: 'main', kind: 'app' as const, started: true, request: { cpu: 1000 + seed } },
    isolation: 'container',
    ...{ cpus: CpuSet.of(cpu), held: CpuSet.EMPTY, hint, memory: [], devices: {}, reusable, unknown: {} },
  };
  return {
    ...{ uid, name: uid, namespace: undefined, containers: [container], policy: 'none', scope: 'container' },
    ...{
      options: {},
      enforcement: { level: 'recorded' as const, target: null },
      upcoming: null,
      transfer: null,
    },
    booking: null,
    owner: { kind: 'persistent', uuid: 'ab', pid: null, command: null, cgroup: null, unknown: {} },
    ...{ formerOwner: null, admittedAt: `at ${seed}`, unknown: {} },
  };
}

const EMPTY: Assignments = {
  settings: {
    ...{ managedCPUs: null, reservedSystemCPUs: CpuSet.EMPTY, strictCPUReservation: false },
    ...{
      isolatedCPUs: null,
      reservedMemory: {},
      cgroupRoot: null,
      kubeletVersion: DEFAULT_VERSION,
      featureGates: DEFAULT_GATES[DEFAULT_VERSION],
      simulated: true,
      unknown: {},
    },
  },
  ...{ cpus: [], pods: [], memory: {}, lastCpus: [], kubelet: null, quiet: null, unknown: {} },
};

/** The file then has another version with a record of the kubelet than without. */
const OLDER: Assignments = { ...EMPTY, settings: { ...EMPTY.settings, kubeletVersion: 'v1.36' } };

/** A sequence of states in which equal pods are the same objects. */
function history(list: readonly { names: readonly string[]; seed: number; named: boolean }[]): Checkpoint[] {
  const known = new Map<string, PodAssignment>();
  const pod = (uid: string, seed: number) => {
    const key = `${uid} ${uid < 'e' ? seed : 0}`;
    if (!known.has(key)) known.set(key, podOf(uid, 'abcdefghij'.indexOf(uid), seed));
    return known.get(key)!;
  };
  const all: Checkpoint[] = [{ generation: 1, bootId: 'boot', writtenAt: 'then', assignments: EMPTY }];
  for (const { names, seed, named } of list) {
    const { generation, assignments } = all.at(-1)!;
    const lastCpus = named
      ? [
          ...assignments.lastCpus.filter(({ name }) => name !== `${seed}`),
          { name: `${seed}`, cpus: CpuSet.of(1) },
        ]
      : assignments.lastCpus;
    const next = { ...assignments, pods: names.map((name) => pod(name, seed)), lastCpus };
    all.push({
      generation: generation + 1,
      bootId: 'boot',
      writtenAt: `step ${generation}`,
      assignments: next,
    });
  }
  return all;
}

it('a line has the kubelet’s changes, but not the begin or end of its record', () => {
  fc.assert(
    fc.property(fc.array(kubeletRecords, { minLength: 1, maxLength: 5 }), (records) => {
      const states = records.map((kubelet, i): Checkpoint => {
        const assignments = { ...OLDER, kubelet };
        return { generation: i + 1, bootId: 'boot', writtenAt: 'then', assignments };
      });
      let text = encodeCheckpoint(states[0]!);
      for (let i = 1; i < states.length; i++) {
        text += sealText(changeText(states[i - 1]!, states[i]!)!).line;
        expectSame(decodeCheckpoint(Buffer.from(text)), states[i]);
      }
      const last = states.at(-1)!;
      const without = { ...last, generation: last.generation + 1, assignments: OLDER };
      expect(changeText(last, without)).toBeUndefined();
      expect(changeText({ ...without, generation: 0 }, states[0]!)).toBeUndefined();
    }),
  );
});

it('a record of the kubelet that no line names stays the same object', () => {
  const kubelet = kubeletRecord('1-2');
  const [first, second] = history([{ names: ['a'], seed: 0, named: false }]).map((each) => {
    return { ...each, assignments: { ...each.assignments, kubelet } };
  });
  const known = readJournal(Buffer.from(encodeCheckpoint(first!)));
  const next = withLines(known, Buffer.from(sealText(changeText(first!, second!)!).line));
  expect(next.checkpoint.assignments.kubelet).toBe(known.checkpoint.assignments.kubelet);
});

it('lines after a state lead to the states that they were made of, whatever changed or moved', () => {
  fc.assert(
    fc.property(steps, fc.nat(), (list, at) => {
      const states = history(list);
      const begin = at % states.length;
      let text = encodeCheckpoint(states[begin]!);
      expectSame(decodeCheckpoint(Buffer.from(text)), states[begin]);
      for (let i = begin + 1; i < states.length; i++) {
        text += sealText(changeText(states[i - 1]!, states[i]!)!).line;
        expectSame(decodeCheckpoint(Buffer.from(text)), states[i]);
      }
    }),
  );
});

function checkpointIn(follower: JournalFollower): unknown {
  const found = follower.look();
  return plain(found.kind === 'good' ? found.checkpoint : found);
}

it('lines lead to the same state one by one or many at once', () => {
  const stateDir = makeStateDir('/dev/shm');
  mkdirSync(stateDir);
  const file = join(stateDir, 'state.json');
  const folder = native.Folder.open(stateDir, false, 0o700, -1);
  fc.assert(
    fc.property(steps, fc.array(fc.boolean(), { minLength: 8, maxLength: 8 }), (list, looks) => {
      const states = history(list);
      writeFileSync(file, encodeCheckpoint(states[0]!));
      const follower = new JournalFollower(folder);
      follower.look();
      const opened = follower.file;
      for (let i = 1; i < states.length; i++) {
        appendFileSync(file, sealText(changeText(states[i - 1]!, states[i]!)!).line);
        if (looks[i - 1] || i === states.length - 1) expect(checkpointIn(follower)).toEqual(plain(states[i]));
      }
      // The whole file was read once.
      expect(follower.file).toBe(opened);
      follower.forget();
    }),
  );
});

it('pods that lines only mention, or do not name, stay the same objects', () => {
  const states = history([
    { names: ['a', 'b'], seed: 0, named: true },
    { names: ['a', 'b', 'c'], seed: 0, named: false },
    { names: ['a', 'b'], seed: 0, named: false },
  ]);
  const before = readJournal(Buffer.from(encodeCheckpoint(states[1]!)));
  const lines = [2, 3].map((i) => sealText(changeText(states[i - 1]!, states[i]!)!).line);
  const { generation, assignments } = withLines(before, Buffer.from(lines.join(''))).checkpoint;
  expect(generation).toBe(4);
  for (const [name, value] of Object.entries(before.checkpoint.assignments))
    expect(assignments[name as keyof Assignments], name).toBe(value);
});

it('lines add names even if the whole state has no member for them', () => {
  const [first, second] = history([{ names: [], seed: 0, named: true }]);
  const text = encodeCheckpoint(first!).split('\n');
  const { lastCpus: _, checksum: _seal, ...members } = JSON.parse(text[1]!);
  const { line } = sealText(JSON.stringify(members));
  const { checksum: _of, ...head } = JSON.parse(text[0]!);
  const begin = sealLine(JSON.stringify({ ...head, bytes: line.length })) + line;
  const next = sealText(changeText(first!, second!)!).line;
  expectSame(decodeCheckpoint(Buffer.from(begin + next)), second);
  expectSame(withLines(readJournal(Buffer.from(begin)), Buffer.from(next)).checkpoint, second);
});

it('lines that contradict those before them are damage', () => {
  const [first, second] = history([{ names: ['a', 'b'], seed: 0, named: false }]);
  const good = `${encodeCheckpoint(first!)}${sealText(changeText(first!, second!)!).line}`;
  const line = (members: object) =>
    sealLine(JSON.stringify({ line: 'change', generation: 3, bootId: 'boot', writtenAt: '', ...members }));
  const codeOf = (text: string) => {
    try {
      return decodeCheckpoint(Buffer.from(good + text)).generation;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  const clash = JSON.parse(sealLine(JSON.stringify(podOf('c', 0, 0))));
  expect(codeOf(line({ released: ['a'] }))).toBe(3);
  for (const wrong of [
    line({ released: ['unknown'] }),
    line({ generation: 2 }),
    line({ generation: 4 }),
    line({ pods: [clash] }),
    line({ memory: { 0: { memory: 1 } } }),
    line({ line: 'other' }),
    `${line({}).replace('boot', 'book')}${line({ generation: 4 })}`,
    `\n${line({})}`,
  ])
    expect(codeOf(wrong), wrong).toBe('ERR_STATE_CORRUPT');
});

describe('an owner’s file', () => {
  it('grows by a line with each grant, and is rewritten before it is much longer than its content', async () => {
    const manager = await open();
    const kept = await manager.acquire({ cpu: 1, name: 'kept' });
    const [{ owner }] = membersOf(manager.stateDir).pods;
    const sizes: number[] = [];
    for (let i = 0; i < 60; i++) {
      await manager.use({ cpu: 1, name: 'x'.repeat(200) }, () => {});
      sizes.push(statSync(join(manager.stateDir, 'owners', owner.uuid)).size);
    }
    expect(ownerMembersOf(manager.stateDir, owner.uuid).pods).toMatchObject([{ uid: kept.uid }]);
    expect(Math.max(...sizes)).toBeLessThan(20_000);
    expect(sizes.some((size, i) => size < (sizes[i - 1] ?? 0))).toBe(true);
  });
});

it('a state of version 1 is read with all its content, and its next commit gives it this version', async () => {
  const manager = await open();
  await manager.acquire({ cpu: 2, owner: 'persistent', name: 'old' });
  const { line: _, ...members } = JSON.parse(
    encodeCheckpoint(decodeCheckpoint(readFileSync(fileOf(manager)))).split('\n')[1]!,
  );
  delete members.checksum;
  const body = JSON.stringify({ format: 'numalign-state', version: 1, ...members }).slice(0, -1);
  const stateDir = makeStateDir('/dev/shm');
  const next = await open(stateDir);
  const checksum = createHash('sha256').update(body).digest('hex');
  const file = `${body},"checksum":"sha256:${checksum}"}\n`;
  writeFileSync(fileOf(next), file.replace('"generation":', '"generation":9'));
  expect(() => decodeCheckpoint(readFileSync(fileOf(next)))).toThrow(/checksum/);
  writeFileSync(fileOf(next), file);
  const later = await open(stateDir);
  expect(later.grants()).toMatchObject([{ name: 'old' }]);
  await later.acquire({ cpu: 1, owner: 'persistent', name: 'new' });
  expect(membersOf(stateDir).pods).toMatchObject([{ name: 'old' }, { name: 'new' }]);
});
