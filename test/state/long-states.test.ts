// needs: agents
// Long states: read in parts, and written whole from texts that are kept.
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../lib/base/native.js';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { JournalFollower } from '../../lib/state/files/journal-follower.js';
import { decodeCheckpoint, encodeCheckpoint } from '../../lib/state/format/journal.js';
import { decodeOwnerFile, generationIn } from '../../lib/state/format/owner-file.js';
import { prepareTexts } from '../../lib/state/format/pod-text.js';
import { makeStateDir } from '../support/state-dir.js';

const PODS = 120;
const FILE = 'state.json';

async function open(stateDir: string): Promise<Manager> {
  const topology = await discover({ synthetic: 'numa:2(memory=8GiB) core:160 pu:1' });
  return openManager({ topology, stateDir });
}

const linesOf = (bytes: Buffer, lines: number) => {
  const all = bytes.toString().split('\n');
  return Buffer.from(`${all.slice(0, lines).join('\n')}\n`);
};

let long: Buffer;
beforeAll(async () => {
  const stateDir = mkdtempSync('/dev/shm/numalign-test-');
  const manager = await open(stateDir);
  for (let i = 0; i < PODS; i++)
    await manager.acquire({ cpu: 1, owner: 'persistent', name: `${i}${'x'.repeat(200)}` });
  long = readFileSync(join(stateDir, FILE));
  manager.close();
  rmSync(stateDir, { recursive: true });
});

function folderWith(bytes: Buffer) {
  const path = makeStateDir('/dev/shm');
  mkdirSync(path);
  const file = join(path, FILE);
  writeFileSync(file, bytes);
  return { file, folder: native.Folder.open(path, false, 0o700, -1) };
}

const lineCount = () => long.toString().split('\n').length - 1;
const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

describe('a long state that is read in parts', () => {
  it.each<[string, (file: string, before: Buffer) => void]>([
    ['stays as it is', () => {}],
    ['grows', (file, before) => appendFileSync(file, long.subarray(before.length))],
    ['is written again', (file) => writeFileSync(file, encodeCheckpoint(decodeCheckpoint(long)))],
    ['is put back', (file, before) => writeFileSync(file, linesOf(before, lineCount() - 20))],
    ['is torn', (file) => appendFileSync(file, '{"line":"change","gen')],
    ['is damaged', (file) => writeFileSync(file, 'x', { flag: 'r+' })],
    ['is removed', (file) => rmSync(file)],
  ])('is read in its last form if it %s meanwhile', async (_, change) => {
    const before = linesOf(long, lineCount() - 10);
    const { file, folder } = folderWith(before);
    const follower = new JournalFollower(folder);
    const preparing = follower.prepare();
    expect(preparing).toBeInstanceOf(Promise);
    change(file, before);
    await preparing;
    expect(plain(follower.look())).toEqual(plain(new JournalFollower(folder).look()));
  });

  it('is not read again without a change', async () => {
    const { folder } = folderWith(long);
    const follower = new JournalFollower(folder);
    await follower.prepare();
    const { good } = follower;
    expect(good?.checkpoint).toEqual(decodeCheckpoint(long));
    expect(follower.look()).toBe(good);
    expect(follower.prepare()).toBeUndefined();
  });

  it('is the one that a reader without time to wait has found', async () => {
    const { file, folder } = folderWith(linesOf(long, lineCount() - 10));
    const follower = new JournalFollower(folder);
    const preparing = follower.prepare();
    writeFileSync(file, long);
    const found = follower.look();
    await preparing;
    expect(follower.look()).toBe(found);
  });

  it('is forgotten together with what was read', async () => {
    const { folder } = folderWith(long);
    const follower = new JournalFollower(folder);
    const preparing = follower.prepare();
    follower.forget();
    await preparing;
    expect(follower.good).toBeUndefined();
  });

  it.each(['missing', 'damaged', 'newer'])('is left to the first reader if it is %s', async (what) => {
    const bytes = Buffer.from(long);
    if (what === 'damaged') bytes[1000]! ^= 1;
    const text = bytes.toString().replace(/"version":\d/, '"version":99');
    const { file, folder } = folderWith(what === 'newer' ? Buffer.from(text) : bytes);
    if (what === 'missing') rmSync(file);
    const [follower, other] = [new JournalFollower(folder), new JournalFollower(folder)];
    await follower.prepare();
    expect(plain(follower.look())).toEqual(plain(other.look()));
  });
});

it('the texts of pods that were read are made a few at a time', () => {
  const { pods } = decodeCheckpoint(long).assignments;
  expect(pods).toHaveLength(PODS);
  let left = 0;
  while (prepareTexts(pods, 50)) left++;
  expect(left).toBe(2);
  expect(prepareTexts(pods, 1)).toBe(false);
});

it('the texts of pods are freed by the next commit', async () => {
  const { pods } = decodeCheckpoint(long).assignments;
  expect(prepareTexts(pods, PODS)).toBe(false);
  const manager = await open(makeStateDir('/dev/shm'));
  onTestFinished(() => manager.close());
  await manager.acquire({ cpu: 1 });
  expect(prepareTexts(pods, 0)).toBe(true);
});

it('an owner’s file that is written whole has the lines of its claims, and ends with the last generation', async () => {
  const manager = await open(makeStateDir('/dev/shm'));
  onTestFinished(() => manager.close());
  const kept = [await manager.acquire({ cpu: 1 }), await manager.acquire({ cpu: 2 })];
  const owners = join(manager.stateDir, 'owners');
  const file = join(owners, readdirSync(owners)[0]!);
  for (let [size, times, last] = [0, 0, 0]; times < 2; ) {
    const grant = await manager.acquire({ cpu: 1, name: 'x'.repeat(200) });
    const bytes = readFileSync(file);
    const { generation, pods } = decodeOwnerFile(bytes);
    expect(pods.map((pod) => pod.uid)).toEqual([...kept.map(({ uid }) => uid), grant.uid]);
    expect(generation).toBeGreaterThan(last);
    expect(generationIn(bytes)).toBe(generation);
    if (statSync(file).size < size) times++;
    [size, last] = [statSync(file).size, generation];
    await grant.release();
  }
});
