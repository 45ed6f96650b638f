// needs: machine
// numalign admit of workloads, and of pods with changed requests.
import { readFileSync } from 'node:fs';
import { openManager } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { idler, isUsable, ownRoot, ROOT } from '../../../test/cgroups/own-root.js';
import { newFolder, numalign, start } from './numalign.js';
import { documents, newFile, pod } from './pods.js';

// A state with one CPU to grant, on any machine.
async function newState(...flags: string[]): Promise<string> {
  const folder = newFolder();
  await numalign(['configure', '--managed', '0-1', '--reserved', '0', '--state-dir', folder, ...flags]);
  return folder;
}

const admit = (folder: string, text: string, ...args: string[]) =>
  numalign(['admit', '-f', newFile(text), '--state-dir', folder, ...args]);

async function grants(folder: string) {
  const { stdout } = await numalign(['status', '--output', 'json', '--state-dir', folder]);
  const { generation, grants } = JSON.parse(stdout);
  const shown = grants.map(({ name, uid, cpus }: Record<string, string>) => ({ name, uid, cpus }));
  return { generation, grants: shown };
}

const deployment = (replicas: number, name = 'web') => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}}
spec:
  replicas: ${replicas}
  template: {spec: {containers: [{name: main, resources: {limits: {cpu: 100m}}}]}}
`;

describe('numalign admit of a workload', () => {
  it('admits a pod for each replica, and more of them later', async () => {
    const folder = await newState();
    expect((await admit(folder, deployment(2))).code).toBe(0);
    const first = await grants(folder);
    expect(first.grants.map(({ name }: { name: string }) => name)).toEqual(['web-0', 'web-1']);
    const { stdout } = await admit(folder, deployment(3), '--output', 'json');
    const answer = JSON.parse(stdout).pods.map((each: { name: string; alreadyAdmitted: boolean }) => [
      each.name,
      each.alreadyAdmitted,
    ]);
    expect(answer).toEqual([
      ['web-0', true],
      ['web-1', true],
      ['web-2', false],
    ]);
  });

  it('changes nothing if it is admitted again', async () => {
    const folder = await newState();
    await admit(folder, documents(deployment(2), pod('one', 1)));
    const before = await grants(folder);
    const again = await admit(folder, documents(deployment(2), pod('one', 1)));
    expect(again).toMatchObject({ code: 0, stderr: '' });
    expect(again.stdout.match(/^admitted already as /gm)).toHaveLength(3);
    expect(await grants(folder)).toEqual(before);
  });

  it('says so if a workload has no pods', async () => {
    const folder = await newState();
    const { code, stdout } = await admit(folder, deployment(0));
    expect([code, stdout]).toEqual([0, 'Deployment web asks for no pods\n']);
  });

  it('admits none if one document is wrong, and names it', async () => {
    const folder = await newState();
    const wrong = deployment(1, 'api').replace('name: main', 'name: MAIN');
    const { code, stderr } = await admit(folder, documents(deployment(1), wrong));
    expect(code).toBe(1);
    expect(stderr).toMatch(/document at line 10: spec\.template: spec\.containers\[0\]\.name must be /);
    expect((await grants(folder)).grants).toEqual([]);
  });

  it('admits the pods of all files, or none', async () => {
    const folder = await newState();
    const files = [deployment(1), pod('large', 2), deployment(1, 'api')].map((text) => newFile(text));
    const all = (list: string[]) =>
      numalign(['admit', '--state-dir', folder, ...list.flatMap((file) => ['-f', file])]);
    const { code, stderr } = await all(files);
    expect([code, stderr]).toEqual([1, expect.stringContaining('nothing of 3 pods is admitted')]);
    expect((await grants(folder)).grants).toEqual([]);
    expect((await all([files[0]!, files[2]!])).code).toBe(0);
    expect((await grants(folder)).grants.map(({ name }: { name: string }) => name)).toEqual([
      'web-0',
      'api-0',
    ]);
  });

  it('refuses two workloads of one name, whose pods would be the same', async () => {
    const folder = await newState();
    const set = deployment(1).replace('Deployment', 'StatefulSet');
    const { code, stderr } = await admit(folder, documents(deployment(1), set));
    expect([code, stderr]).toEqual([1, expect.stringContaining('two pods have the name default/web-0: ')]);
  });
});

describe('a pod with a changed request', () => {
  it('is refused, with the way to replace it', async () => {
    const folder = await newState();
    await admit(folder, deployment(1));
    const before = await grants(folder);
    const { code, stderr } = await admit(folder, deployment(1).replace('100m', '200m'));
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^numalign: pod web-0 is not admitted: pod \S+ is admitted already, with other containers or amounts: release it first, or have it replaced \(--replace\) \[ERR_POD_CONFLICT\]\n$/,
    );
    expect(await grants(folder)).toEqual(before);
  });

  it('gets its own CPU again with --replace, even if no other is free', async () => {
    const folder = await newState();
    await admit(folder, pod('one', 1));
    const [before] = (await grants(folder)).grants;
    const more = pod('one', 1).replace('16Mi', '32Mi');
    const { code, stdout, stderr } = await admit(folder, more, '--replace');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^main +app +1 +none +0 +32 MiB on 0\nadmitted as \S+, in place of what it was\n$/m,
    );
    expect((await grants(folder)).grants).toEqual([before]);
    const again = await admit(folder, more, '--replace', '--output', 'json');
    expect(JSON.parse(again.stdout).pods).toMatchObject([{ alreadyAdmitted: true, replaced: false }]);
  });

  it('stays unchanged if the new one, or another of the file, has no room', async () => {
    const folder = await newState();
    await admit(folder, pod('one', 1));
    const before = await grants(folder);
    const large = await admit(folder, pod('one', 2), '--replace');
    expect([large.code, large.stderr]).toEqual([1, expect.stringContaining('pod one is not admitted: ')]);
    expect(await grants(folder)).toEqual(before);
    const more = pod('one', 1).replace('16Mi', '32Mi');
    const other = await admit(folder, documents(more, pod('two', 1)), '--replace');
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('pod two is not admitted: ')]);
    expect(await grants(folder)).toEqual(before);
  });

  it.runIf(isUsable)(
    'leaves its attached process in the shared pool, or on its CPU if it is refused',
    async () => {
      ownRoot();
      const folder = await newState('--cgroup-root', ROOT);
      await admit(folder, pod('one', 1));
      const pid = idler();
      const attach = () => numalign(['attach', 'one', String(pid), '--state-dir', folder]);
      await attach();
      const allowed = () =>
        /^Cpus_allowed_list:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1];
      const more = pod('one', 1).replace('16Mi', '32Mi');
      expect((await admit(folder, more, '--replace')).code).toBe(0);
      expect(allowed()).toBe('0');
      expect((await attach()).code).toBe(0);
      expect(allowed()).toBe('1');
      expect((await admit(folder, pod('one', 2), '--replace')).code).toBe(1);
      expect(allowed()).toBe('1');
      await numalign(['release', 'one', '--state-dir', folder]);
    },
  );

  it('stays if a living process owns it', async () => {
    const folder = await newState();
    const manager = await openManager({ stateDir: folder });
    onTestFinished(() => manager.close());
    const own = await manager.admit({
      uid: 'own',
      containers: [{ name: 'main', limits: { cpu: 1, memory: '16Mi' } }],
    });
    const before = await grants(folder);
    const changed = newFile(pod('one', 1, ', uid: own').replace('16Mi', '32Mi'));
    const run = start(['admit', '-f', changed, '--state-dir', folder, '--replace']);
    const { code, stderr } = await run.ended;
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/ grant own belongs to process .* \[ERR_OWNER_ALIVE\]\n$/),
    ]);
    expect(await grants(folder)).toEqual(before);
    await own.release();
  });
});
