// Two builds on one state folder: docs/upgrades.md. NUMALIGN_OLDER: the folder of an older package,
// with its addon; without it the older build is this one in another folder.
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { Agent } from '../support/agent.js';
import { makeStateDir } from '../support/state-dir.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const OLDER = process.env.NUMALIGN_OLDER ?? ROOT;

interface Build {
  readonly folder: string;
  start(stateDir: string): Promise<Agent>;
}

/** An installation of a package in a folder of its own. */
function installed(from: string, change: (text: string) => string = (text) => text): Build {
  const folder = join(makeStateDir(), 'package');
  const support = join(folder, 'test/support');
  mkdirSync(support, { recursive: true });
  cpSync(join(ROOT, 'test/support/agent.mjs'), join(support, 'agent.mjs'));
  cpSync(join(from, 'package.json'), join(folder, 'package.json'));
  cpSync(join(from, 'dist'), join(folder, 'dist'), {
    recursive: true,
    filter: (path) => !path.endsWith('.map'),
  });
  for (const name of ['build', 'prebuilds', 'node_modules']) {
    if (readdirSync(from).includes(name)) symlinkSync(join(from, name), join(folder, name));
  }
  for (const name of readdirSync(join(folder, 'dist')).filter((each) => each.endsWith('.cjs'))) {
    const path = join(folder, 'dist', name);
    writeFileSync(path, change(readFileSync(path, 'utf8')));
  }
  const start = async (stateDir: string) => {
    const agent = new Agent([], join(support, 'agent.mjs'));
    await agent.tell('open', { stateDir, simulate: 'core:8 pu:1', reservedSystemCPUs: '0' });
    return agent;
  };
  return { folder, start };
}

/** The same, as a later release that writes a newer version where it records what the kubelet gave out. */
const withNewerFormats = () =>
  installed(ROOT, (text) =>
    text
      .replaceAll(/version: 4,\s+older: \[2, 3\],/g, 'version: 5, older: [2, 3, 4],')
      .replaceAll(/("v1\.37"\) \?) 4 : (\w+) === null/g, '$1 ($2 === null ? 4 : 5) : $2 === null'),
  );

const namesOf = async (agent: Agent) =>
  (await agent.tell('grants')).map(({ name }: { name: string }) => name);
const request = (name: string) => ({ cpu: 2, name });

const PAIRS = [
  ['an older build lives while a newer one opens the folder', OLDER, ROOT],
  ['a newer build lives while an older one opens the folder', ROOT, OLDER],
] as const;

it.each(PAIRS)('an owner of %s, and each sees and respects the other', async (_, first, second) => {
  const stateDir = makeStateDir();
  const owner = await installed(first).start(stateDir);
  const held = await owner.tell('acquire', request('first'));
  const other = await installed(second).start(stateDir);
  const more = await other.tell('acquire', request('second'));
  expect(await namesOf(owner)).toEqual(['first', 'second']);
  expect((await other.ask('acquire', { cpu: 4 })).error?.code).toBe('ERR_INSUFFICIENT_CPUS');
  expect((await other.ask('release', { uid: held.uid })).error?.code).toBe('ERR_OWNER_ALIVE');
  await owner.tell('resize', { uid: held.uid, cpu: 3 });
  await other.tell('release', { uid: more.uid });
  expect(await namesOf(owner)).toEqual(['first']);
  await owner.kill();
  await other.tell('acquire', { cpu: 7, name: 'all' });
  expect(await namesOf(other)).toEqual(['all']);
});

it('an owner works on after its package is replaced', async () => {
  const stateDir = makeStateDir();
  const older = installed(OLDER);
  const owner = await older.start(stateDir);
  const { uid } = await owner.tell('acquire', request('first'));
  renameSync(older.folder, `${older.folder}.before`);
  renameSync(installed(ROOT).folder, older.folder);
  await owner.tell('resize', { uid, cpu: 3 });
  expect((await owner.ask('acquire', { cpu: 6 })).error?.code).toBe('ERR_INSUFFICIENT_CPUS');
  await owner.tell('release', { uid });
  expect(await namesOf(owner)).toEqual([]);
});

it('a build that meets a newer format says so and touches nothing; its own grants hold', async () => {
  const stateDir = makeStateDir();
  const older = await installed(ROOT).start(stateDir);
  const { uid } = await older.tell('acquire', request('first'));
  const newer = await withNewerFormats().start(stateDir);
  await newer.tell('acquire', request('second'));
  await newer.tell('recordKubelet', []);
  const file = join(stateDir, 'state.json');
  const before = readFileSync(file, 'utf8');
  expect(before).toMatch(/^\{"format":"numalign-state","version":5,/);

  expect(await namesOf(older)).toEqual(['first', 'second']);
  for (const [verb, argument] of [
    ['acquire', { cpu: 1 }],
    ['release', { uid }],
  ] as const) {
    const { error } = await older.ask(verb, argument);
    expect(error?.code).toBe('ERR_STATE_VERSION');
    expect(error?.message).toContain('npm install numalign@latest');
  }
  expect(readFileSync(file, 'utf8')).toBe(before);
  expect(readdirSync(stateDir)).not.toContain('quarantine');

  expect((await newer.ask('acquire', { cpu: 4 })).error?.code).toBe('ERR_INSUFFICIENT_CPUS');
  await older.kill();
  await newer.tell('acquire', { cpu: 4, name: 'third' });
  expect(await namesOf(newer)).toEqual(['second', 'third']);
});
