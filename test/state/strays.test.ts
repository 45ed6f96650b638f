// needs: restores
// What other programs leave in a state folder, under the names of numalign's files.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { type Manager, openManager } from '../../lib/index.js';
import { Ledger } from '../../lib/state/ledger.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { makeNewer } from '../support/newer-state.js';
import { makeStateDir } from '../support/state-dir.js';

const MACHINE = 'core:4 pu:2';
const UUID = '11111111-2222-4333-8444-555555555555';

async function open(stateDir: string): Promise<Manager> {
  const manager = await openManager({ topology: await discover({ synthetic: MACHINE }), stateDir });
  onTestFinished(() => manager.close());
  return manager;
}

let used: string;

beforeAll(async () => {
  const parent = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  used = join(parent, 'used');
  const manager = await openManager({ topology: await discover({ synthetic: MACHINE }), stateDir: used });
  await manager.acquire({ cpu: 1, name: 'lasting', owner: 'persistent' });
  manager.close();
  return () => rmSync(parent, { recursive: true });
});

/** A folder with one persistent grant. */
function usedFolder(): string {
  const stateDir = makeStateDir();
  cpSync(used, stateDir, { recursive: true });
  return stateDir;
}

const STRAYS: Record<string, (path: string) => unknown> = {
  'a folder': (path) => mkdirSync(path),
  'a pipe': (path) => execFileSync('mkfifo', [path]),
  'a socket': async (path) => {
    const server = createServer().listen(path);
    onTestFinished(() => void server.close());
    await once(server, 'listening');
  },
  'a link': (path) => symlinkSync('/dev/zero', path),
  'a file of 100 GB': (path) => {
    writeFileSync(path, '');
    truncateSync(path, 100e9);
  },
  ...(process.getuid?.() === 0 && { 'a device': (path) => execFileSync('mknod', [path, 'c', '1', '5']) }),
};
const KINDS = Object.keys(STRAYS);

const quarantined = (stateDir: string) => {
  const folder = join(stateDir, 'quarantine');
  return existsSync(folder) ? readdirSync(folder).map((name) => name.replace(/^[^-]*-/, '')) : [];
};

it.each(KINDS)(
  '%s in the place of an owner’s file is put aside and reported, and disturbs nothing',
  async (kind) => {
    const stateDir = usedFolder();
    for (const name of [UUID, `${UUID}.new`]) await STRAYS[kind]!(join(stateDir, 'owners', name));
    const manager = await open(stateDir);
    await manager.acquire({ cpu: 1, name: 'next' });
    expect(manager.grants().map(({ name }) => name)).toEqual(['lasting', 'next']);
    expect(quarantined(stateDir)).toContain(UUID);
    const [report] = Ledger.open(stateDir).recoveries;
    expect(report).toMatchObject({
      code: 'STATE_RECOVERED',
      quarantined: expect.arrayContaining(readdirSync(join(stateDir, 'quarantine'))),
    });
    expect(report!.message).toContain(`${stateDir}/owners had ${UUID}`);
  },
);

it.each(KINDS)(
  '%s in the place of an owner’s file does not keep a damaged state from recovery',
  async (kind) => {
    const stateDir = usedFolder();
    await STRAYS[kind]!(join(stateDir, 'owners', UUID));
    writeFileSync(join(stateDir, 'state.json'), 'nonsense');
    const manager = await open(stateDir);
    await manager.acquire({ cpu: 1, name: 'next' });
    expect(manager.grants().map(({ name }) => name)).toEqual(['lasting', 'next']);
  },
);

it.each(KINDS)('%s in the place of both copies of the state is put aside', async (kind) => {
  const stateDir = usedFolder();
  for (const name of ['state.json', 'state.copy.json']) {
    rmSync(join(stateDir, name));
    await STRAYS[kind]!(join(stateDir, name));
  }
  const manager = await open(stateDir);
  await manager.acquire({ cpu: 1, name: 'next' });
  expect(manager.grants().map(({ name }) => name)).toEqual(['lasting', 'next']);
  expect(quarantined(stateDir).sort()).toEqual(['state.copy.json', 'state.json']);
});

/** A stopped owner of 6 CPUs, with a folder in the place of its file, whose name is `uuid`. */
async function displacedOwner(stateDir: string) {
  const owner = new Agent();
  await owner.tell('open', { stateDir, simulate: MACHINE });
  await owner.tell('acquire', { cpu: 6 });
  owner.process.kill('SIGSTOP');
  const [uuid] = readdirSync(join(stateDir, 'owners'));
  const path = join(stateDir, 'owners', uuid!);
  rmSync(path);
  mkdirSync(path);
  return { owner, uuid: uuid!, path };
}

it('what takes the place of a living owner’s file stays until the owner has written it again', async () => {
  const stateDir = makeStateDir();
  const manager = await open(stateDir);
  const { owner, path } = await displacedOwner(stateDir);
  expect(await errorOf(() => manager.acquire({ cpu: 2 }))).toMatchObject({ code: 'ERR_INSUFFICIENT_CPUS' });
  expect(quarantined(stateDir)).toEqual([]);
  await owner.kill();
  rmSync(path, { recursive: true });
});

it('what has taken the place of a dead owner’s file keeps no CPUs', async () => {
  const stateDir = makeStateDir();
  const { owner, uuid } = await displacedOwner(stateDir);
  await owner.kill();
  const manager = await open(stateDir);
  await manager.acquire({ cpu: 6 });
  await expect
    .poll(
      async () => {
        await (await manager.acquire({ cpu: 1 })).release();
        return quarantined(stateDir);
      },
      { timeout: 5_000, interval: 200 },
    )
    .toContain(uuid);
});

it('15,000 empty files among the owners’ are removed', async () => {
  const stateDir = usedFolder();
  const nameOf = (i: number) => join(stateDir, 'owners', `${String(i).padStart(8, '0')}${UUID.slice(8)}`);
  writeFileSync(nameOf(0), '');
  for (let i = 1; i < 15_000; i++) linkSync(nameOf(0), nameOf(i));
  await open(stateDir);
  expect(readdirSync(join(stateDir, 'owners'))).toHaveLength(1);
});

it('an error about the contents of a state names its folder, and the file in it', async () => {
  const stateDir = usedFolder();
  writeFileSync(join(stateDir, 'owners', UUID), '{"format":"numalign-owner","version":2,"kind":"persistent"');
  writeFileSync(join(stateDir, 'state.json'), 'nonsense');
  const manager = await open(stateDir);
  const { code, message } = await errorOf(() => manager.acquire({ cpu: 1 }));
  expect(code).toBe('ERR_STATE_CORRUPT');
  expect(message).toMatch(new RegExp(`owners/${UUID}.* \\(in ${stateDir}\\)$`));
});

it('an error about a state of which nothing is left names its folder', async () => {
  const stateDir = usedFolder();
  rmSync(join(stateDir, 'owners'), { recursive: true });
  mkdirSync(join(stateDir, 'owners'));
  writeFileSync(join(stateDir, 'owners', UUID), '{"format":"numalign-owner","version":2,"kind":"persistent"');
  for (const name of ['state.json', 'state.copy.json']) writeFileSync(join(stateDir, name), 'nonsense');
  const { code, message } = await errorOf(() => open(stateDir));
  expect(code).toBe('ERR_STATE_CORRUPT');
  expect(message).toContain(`(in ${stateDir})`);
});

it('an error about the format of a state names its folder', async () => {
  const stateDir = usedFolder();
  makeNewer(stateDir, true);
  const manager = await open(stateDir);
  const { code, message } = await errorOf(() => manager.acquire({ cpu: 1 }));
  expect(code).toBe('ERR_STATE_VERSION');
  expect(message).toContain(`(in ${stateDir})`);
});

it('an error about a lock that is no file names it', async () => {
  const stateDir = usedFolder();
  rmSync(join(stateDir, 'lock'));
  mkdirSync(join(stateDir, 'lock'));
  const { code, message } = await errorOf(() => open(stateDir));
  expect(code).toBe('ERR_STATE_FOLDER');
  expect(message).toContain(`cannot open lock in ${stateDir}: Is a directory (it is not an ordinary file)`);
});
