import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { newFolder, numalign, start, until } from './numalign.js';
import { documents, newFile, pod } from './pods.js';

// A state in which one CPU can be had, on any machine.
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

// More than are admitted before a signal arrives, however late.
const MANY = documents(...Array.from({ length: 2_000 }, (_, i) => SHARED.replace('web', `web-${i}`)));

describe('numalign admit', () => {
  it('admits a pod that stays, prints its uid and containers, and status shows them', async () => {
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
      'no exclusive CPUs: container log: 100m is no whole number of CPUs',
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
    const page = (await numalign(['status', '--state-dir', folder])).stdout.split('\n').slice(-8, -1);
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

  it('gives pods back by name or uid', async () => {
    const folder = await newState();
    await admit(folder, documents(pod('one', 1, ', uid: pod-of-tests'), SHARED));
    const release = (text: string) => numalign(['release', text, '--state-dir', folder]);
    expect((await release('pod-of-tests')).stdout).toBe('released grant pod-of-tests (one): CPU 1\n');
    expect((await release('web')).stdout).toMatch(/^released grant \S+ \(web\): it had no exclusive CPUs\n$/);
    expect((await status(folder)).grants).toEqual([]);
  });

  it('prints what a pod has that is admitted again, and does not change it', async () => {
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

  it('refuses a second pod of the name and namespace of a living one, and names that', async () => {
    const folder = await newState();
    await admit(folder, pod('one', 1, ', namespace: prod'));
    const [first] = (await status(folder)).grants;
    const again = await admit(folder, pod('one', 1, ', namespace: prod'));
    expect([again.code, again.stdout]).toEqual([1, '']);
    expect(again.stderr).toContain(`pod prod/one is admitted already, as ${first!.uid}: release it first`);
    expect(again.stderr).toMatch(/\[ERR_POD_CONFLICT\]\n$/);
    const web = (metadata: string) => SHARED.replace('name: web', `name: one${metadata}`);
    for (const other of ['', ', namespace: test', ', namespace: prod, uid: two'])
      expect((await admit(folder, web(other))).stderr).toBe('');
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

  it('refuses the second of two pods of one name in a file, and keeps none', async () => {
    const folder = await newState();
    const { code, stderr } = await admit(folder, documents(SHARED, SHARED));
    expect([code, stderr]).toEqual([1, expect.stringContaining('admitted before and released again: web')]);
    expect((await status(folder)).grants).toEqual([]);
  });

  it('explains a rejection, and keeps none of the pods that came before', async () => {
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
    expect(lines.at(-2)).toMatch(/^admitted before and released again: one, web \[ERR_\w+\]$/);
    // That one was not of this call.
    expect((await status(folder)).grants).toMatchObject([{ uid: 'before' }]);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)(
    'keeps none where it is ended by %s in the middle',
    async (name) => {
      const folder = await newState();
      const run = start(['admit', '-f', newFile(MANY), '--state-dir', folder]);
      await until(
        () => readFileSync(join(folder, 'state.json'), 'utf8').includes('"name":"web-0"'),
        'the first pod',
      );
      run.process.kill(name);
      const { signal, stdout, stderr } = await run.ended;
      expect({ signal, stdout }).toEqual({ signal: name, stdout: '' });
      expect(stderr).toMatch(
        new RegExp(
          `^numalign: ended by ${name}\nadmitted before and released again: web-\\d+(, web-\\d+)*\n$`,
        ),
      );
      expect((await status(folder)).grants).toEqual([]);
    },
  );

  it('keeps none, and says so by its exit code, where it is ended by a signal of which it cannot die', async () => {
    const folder = await newState();
    const run = start(['admit', '-f', newFile(MANY), '--state-dir', folder]);
    await until(
      () => readFileSync(join(folder, 'state.json'), 'utf8').includes('"name":"web-0"'),
      'the first pod',
    );
    run.process.kill('SIGQUIT');
    const { code, stdout, stderr } = await run.ended;
    expect({ code, stdout }).toEqual({ code: 128 + 3, stdout: '' });
    expect(stderr).toMatch(
      /^numalign: ended by SIGQUIT\nadmitted before and released again: web-\d+(, web-\d+)*\n$/,
    );
    expect((await status(folder)).grants).toEqual([]);
  });

  it('checks all pods before it makes the folder', async () => {
    const folder = join(newFolder(), 'state');
    const { code, stderr } = await admit(folder, documents(SHARED, 'kind: Job\n'));
    expect(code).toBe(1);
    expect(stderr).toContain(`kind must be "Pod", not 'Job'`);
    expect(existsSync(folder)).toBe(false);
  });

  it('is not for described machines', async () => {
    const { code, stderr } = await numalign(['admit', '-f', 'x', '--synthetic', 'core:2']);
    expect(code).toBe(2);
    expect(stderr).toContain("unknown option '--synthetic'");
  });
});
