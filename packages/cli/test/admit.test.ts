// needs: process
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { NodeSet } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../../lib/base/native.js';
import { MAIN, newFolder, numalign, start, until } from './numalign.js';
import { documents, newFile, pod } from './pods.js';

// A state with one CPU to grant, on any machine.
async function newState(): Promise<string> {
  const folder = newFolder();
  await numalign(['configure', '--managed', '0-1', '--reserved', '0', '--state-dir', folder]);
  return folder;
}

function admit(folder: string, text: string, ...args: string[]) {
  return numalign(['admit', '-f', newFile(text), '--state-dir', folder, ...args]);
}

async function status(folder: string) {
  return JSON.parse((await numalign(['status', '--output', 'json', '--state-dir', folder])).stdout);
}

const SHARED = 'kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: web}, {name: log}]}\n';
const SEVERAL = `
kind: Pod
metadata: {name: gateway}
spec:
  initContainers:
    - {name: setup, resources: {limits: {cpu: 1, memory: 16Mi}}}
  containers:
    - {name: main, resources: {limits: {cpu: 1, memory: 16Mi}}}
    - {name: log, resources: {limits: {cpu: 100m, memory: 16Mi}}}
`;

// So many pods that a signal arrives before they are committed, however late.
const MANY = documents(...Array.from({ length: 2_000 }, (_, i) => SHARED.replace('web', `web-${i}`)));

// What a command line evaluates first: it goes no further than to its first listener of SIGINT,
// until a writer of the pipe PAUSE has come and gone.
const PAUSING = `
  import { readFileSync } from 'node:fs';
  const pause = (name) => {
    if (name !== 'SIGINT') return;
    process.off('newListener', pause);
    readFileSync(process.env.PAUSE);
  };
  process.on('newListener', pause);
`;

/** `numalign admit` of one pod that listens to signals, and waits for the state's lock. */
async function admitWaiting(folder: string) {
  const pipe = join(newFolder(), 'pause');
  execFileSync('mkfifo', [pipe]);
  const run = start(['admit', '-f', newFile(SHARED), '--state-dir', folder], {
    program: [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(PAUSING)}`, MAIN],
    env: { PAUSE: pipe },
  });
  // Opened once the process reads it: it has no other transaction before the admission.
  const writer = await open(pipe, 'w');
  const lock = native.Folder.open(folder, false, 0o700, -1).tryLock('lock', '4711 another process\n')!;
  onTestFinished(() => lock.release());
  await writer.close();
  const waiter = new RegExp(`-> OFDLCK .*:${statSync(join(folder, 'lock')).ino} `);
  await until(() => waiter.test(readFileSync('/proc/locks', 'latin1')), 'a process that waits for the lock');
  return { run, lock };
}

describe('numalign admit', () => {
  it('admits a persistent pod, prints its uid and containers, and status shows them', async () => {
    const folder = await newState();
    const { code, stdout, stderr } = await admit(folder, documents(SEVERAL, SHARED));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [, gateway, web] =
      /admitted as ([0-9a-f-]{36})\n\n.*admitted as ([0-9a-f-]{36})\n$/s.exec(stdout) ?? [];
    expect(stdout.split('\n').slice(0, 6)).toEqual([
      'pod gateway (Guaranteed)',
      'CONTAINER  KIND  CPUS         HELD  NUMA  MEMORY',
      'setup      init  1            none  0     none',
      'main       app   1            none  0     16 MiB on 0',
      'log        app   shared pool  none  0     16 MiB on 0',
      'no exclusive CPUs: container log: 100m is not a whole number of CPUs',
    ]);
    expect(stdout).toContain('pod web (BestEffort)\n');
    expect(stdout).toContain(
      'no exclusive CPUs: BestEffort: container web has no limit of cpu and memory, container log has no limit of cpu and memory\n',
    );
    expect((await status(folder)).grants).toMatchObject([
      {
        uid: gateway,
        name: 'gateway',
        cpus: '1',
        owner: { kind: 'persistent' },
        containers: [{ name: 'setup', cpus: '1' }, {}, { name: 'log', cpus: null }],
      },
      { uid: web, name: 'web', cpus: '', alive: true, containers: [{ cpus: null }, { cpus: null }] },
    ]);
    const page = (await numalign(['status', '--state-dir', folder])).stdout.split('\n').slice(-10, -3);
    expect(page.map((line) => line.replace(/ {2,}/g, '  ').replace(/ {2}\S+ \S+Z$/, ''))).toEqual([
      `${gateway?.slice(0, 8)}  gateway  1  0  32 MiB on 0  persistent  alive  members`,
      '  ├─ setup (init)  1',
      '  ├─ main  1  16 MiB on 0',
      '  └─ log  shared pool  16 MiB on 0',
      `${web?.slice(0, 8)}  web  shared pool  -  -  persistent  alive  recorded`,
      '  ├─ web  shared pool',
      '  └─ log  shared pool',
    ]);
    const tree = await numalign(['topology', '--state-dir', folder]);
    expect(tree.stdout).toMatch(/^exclusive: +1 \(gateway\)$/m);
  });

  it.each([
    ['as its manifest says', '"true"', [], { maxPerHour: null, noticeMs: 5000, exclude: [] }],
    [
      'on the terms of the command line',
      '"true"',
      ['--movable', 'notice=1s,exclude=0'],
      { maxPerHour: null, noticeMs: 1000, exclude: [0] },
    ],
    ['or does not', '"false"', [], null],
  ])('consents to moves %s', async (_, annotation, args, movable) => {
    const folder = await newState();
    const metadata = `, annotations: {numalign.io/movable: ${annotation}}`;
    expect((await admit(folder, pod('one', 1, metadata), ...args)).code).toBe(0);
    const [grant] = (await status(folder)).grants;
    expect(grant.movable && { ...grant.movable, exclude: [...NodeSet.parse(grant.movable.exclude)] }).toEqual(
      movable,
    );
    const { stdout } = await numalign(['status', '--state-dir', folder]);
    expect(stdout.includes('alive, movable')).toBe(movable !== null);
  });

  it('gives pods back by name or uid', async () => {
    const folder = await newState();
    await admit(folder, documents(pod('one', 1, ', uid: pod-of-tests'), SHARED));
    const release = (text: string) => numalign(['release', text, '--state-dir', folder]);
    expect((await release('pod-of-tests')).stdout).toBe('released grant pod-of-tests (one): CPU 1\n');
    expect((await release('web')).stdout).toMatch(/^released grant \S+ \(web\): it had no exclusive CPUs\n$/);
    expect((await status(folder)).grants).toEqual([]);
  });

  it('prints the grant of a pod that is admitted again, and does not change it', async () => {
    const folder = await newState();
    const first = await admit(folder, pod('one', 1, ', uid: u-1'), '--output', 'json');
    expect(JSON.parse(first.stdout)).toEqual({
      pods: [
        {
          uid: 'u-1',
          name: 'one',
          policy: 'best-effort',
          scope: 'container',
          containers: [
            {
              ...{ name: 'main', kind: 'app', cpus: '1', held: '', hint: { nodes: '0', preferred: true } },
              isolation: 'container',
              mixed: 0,
              memory: [{ nodes: [0], type: 'memory', bytes: 2 ** 24 }],
              devices: {},
              whyShared: null,
            },
          ],
          booking: null,
          memoryEnforcement: [
            {
              ...{ container: 'main', cgroup: null, wanted: '0', nodes: null },
              ...{ applied: false, reason: 'no-cgroup', migrates: null },
            },
          ],
          alreadyAdmitted: false,
          replaced: false,
          quiet: null,
          qosClass: 'Guaranteed',
          flags: [],
          warnings: [],
        },
      ],
    });
    const { generation } = await status(folder);
    const again = await admit(folder, pod('one', 1, ', uid: u-1'));
    expect(again.code).toBe(0);
    expect(again.stdout).toMatch(/^main +app +1 +none +0 +16 MiB on 0\nadmitted already as u-1\n$/m);
    expect((await status(folder)).generation).toBe(generation);
    const other = await admit(folder, pod('one', 2, ', uid: u-1'));
    expect(other.code).toBe(1);
    expect(other.stderr).toMatch(/^numalign: pod one is not admitted: .* \[ERR_POD_CONFLICT\]\n$/);
  });

  it('identifies a pod without a uid by its namespace and name', async () => {
    const folder = await newState();
    await admit(folder, pod('one', 1, ', namespace: prod'));
    const [first] = (await status(folder)).grants;
    const again = await admit(folder, pod('one', 1, ', namespace: prod'));
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout).toContain(`\nadmitted already as ${first!.uid}\n`);
    const web = (metadata: string) => SHARED.replace('name: web', `name: one${metadata}`);
    for (const other of ['', ', namespace: test', ', namespace: prod, uid: two'])
      expect((await admit(folder, web(other))).stderr).toBe('');
    expect((await status(folder)).grants).toHaveLength(4);
    expect((await numalign(['release', first!.uid, '--state-dir', folder])).code).toBe(0);
    const after = await numalign(['release', 'one', '--state-dir', folder, '--output', 'json']);
    const { grants } = await status(folder);
    const { code, message, details } = JSON.parse(after.stderr).error;
    expect([code, details.valid]).toEqual([
      'ERR_INVALID_ARGUMENT',
      grants.map((grant: { uid: string }) => grant.uid),
    ]);
    for (const { uid } of grants) expect(message).toContain(uid);
  });

  it('gives each pod with a generated name its own uid', async () => {
    const folder = await newState();
    const generated = SHARED.replace('name: web', 'generateName: web-');
    await admit(folder, documents(generated, generated));
    await admit(folder, generated);
    const uids = (await status(folder)).grants.map(({ uid }: { uid: string }) => uid);
    expect(new Set(uids).size).toBe(3);
  });

  it('refuses a pod with the name of a living one but another uid, and names that one', async () => {
    const folder = await newState();
    await admit(folder, SHARED.replace('name: web', 'name: web, uid: two'));
    const other = await admit(folder, SHARED);
    expect([other.code, other.stdout]).toEqual([1, '']);
    expect(other.stderr).toContain('pod default/web is admitted already, as two: release it first');
    expect(other.stderr).toMatch(/\[ERR_POD_CONFLICT\]\n$/);
  });

  it('refuses two pods of one name in a file, and makes no folder', async () => {
    const folder = join(newFolder(), 'state');
    const { code, stderr } = await admit(folder, documents(SHARED, pod('other', 1), SHARED));
    expect([code, existsSync(folder)]).toEqual([1, false]);
    expect(stderr).toMatch(
      /two pods have the name default\/web: .* document at line 1 and .* document at line 13 \[ERR_POD_CONFLICT\]\n$/,
    );
  });

  it('explains a rejection, and keeps none of the earlier pods', async () => {
    const folder = await newState();
    await admit(
      folder,
      'kind: Pod\nmetadata: {name: early, uid: before}\nspec: {containers: [{name: web}]}\n',
    );
    const again = 'kind: Pod\nmetadata: {name: early, uid: before}\nspec: {containers: [{name: web}]}\n';
    const { code, stdout, stderr } = await admit(
      folder,
      documents(again, pod('one', 1), SHARED, pod('two', 1)),
      '--policy',
      'restricted',
    );
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const lines = stderr.split('\n');
    expect(lines[0]).toMatch(/^numalign: pod two is not admitted: \w+: container main: /);
    expect(lines).toContain('  held by "one": 1');
    expect(lines.at(-2)).toMatch(/^nothing of 4 pods is admitted \[ERR_\w+\]$/);
    // An earlier call admitted that one.
    expect((await status(folder)).grants).toMatchObject([{ uid: 'before' }]);
  });

  it('admits all or none if it is killed in the middle', async () => {
    const folder = await newState();
    const run = start(['admit', '-f', newFile(MANY), '--state-dir', folder]);
    // Owner files claim grants before the commit.
    await until(() => readdirSync(join(folder, 'owners')).length > 1, 'the first owners');
    run.process.kill('SIGKILL');
    expect((await run.ended).signal).toBe('SIGKILL');
    expect((await status(folder)).grants).toEqual([]);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('admits none if %s ends it before, and says so', async (name) => {
    const folder = await newState();
    const { run, lock } = await admitWaiting(folder);
    run.process.kill(name);
    const stderr = `numalign: ended by ${name}: nothing is admitted\n`;
    expect(await run.ended).toMatchObject({ signal: name, stdout: '', stderr });
    lock.release();
    expect((await status(folder)).grants).toEqual([]);
  });

  it('checks all pods before it makes the folder', async () => {
    const folder = join(newFolder(), 'state');
    const { code, stderr } = await admit(folder, documents(SHARED, 'kind: Deployment\n'));
    expect(code).toBe(1);
    expect(stderr).toContain('spec must be an object, but there is none');
    expect(existsSync(folder)).toBe(false);
  });

  it('refuses described machines', async () => {
    const { code, stderr } = await numalign(['admit', '-f', 'x', '--synthetic', 'core:2']);
    expect(code).toBe(2);
    expect(stderr).toContain("unknown option '--synthetic'");
  });
});
