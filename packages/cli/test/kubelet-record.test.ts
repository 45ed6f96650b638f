// needs: machine
// The command line's output about the kubelet's record.
import { readFileSync, rmSync } from 'node:fs';
import { type ManagerOptions, openManager } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { newFolder, numalign } from './numalign.js';

const memory = [{ nodes: [0], type: 'memory', bytes: 2 ** 20 }];
const pods = [
  { namespace: 'default', name: 'web', containers: [{ name: 'main', cpus: '1', memory }] },
  {
    namespace: 'edge',
    name: 'dns',
    containers: [{ name: 'main', devices: { 'example.com/nic': ['eth1'] } }],
  },
];

async function keeperOf(folder: string, options: ManagerOptions = {}) {
  const own = { stateDir: folder, managedCPUs: '0-1', sharedMember: false };
  const manager = await openManager({ ...own, ...options });
  onTestFinished(() => manager.close());
  await manager.recordKubelet(pods);
  return manager;
}

describe('numalign status', () => {
  it('shows the CPUs of each kubelet’s pod, and the keeper of the record', async () => {
    const folder = newFolder();
    const manager = await keeperOf(folder);
    const status = async (...more: string[]) =>
      (await numalign(['status', '--state-dir', folder, ...more])).stdout;
    const text = await status();
    const { since } = manager.kubelet()!;
    expect(text).toContain(`the kubelet's, 2 pods, kept on record by process ${process.pid} (`);
    expect(text).toContain(`) since ${since}:\n`);
    expect(text).toMatch(/^ {2}default\/web of the kubelet: CPUs 1, 1 MiB on 0$/m);
    expect(text).toMatch(/^ {2}edge\/dns of the kubelet: example.com\/nic eth1$/m);
    expect(text).toMatch(/^shared: +CPU 0$/m);
    expect(JSON.parse(await status('--output', 'json')).kubelet).toEqual(
      JSON.parse(JSON.stringify(manager.kubelet())),
    );
  });

  it('says that it has no keeper, since when, and the last keeper', async () => {
    const folder = newFolder();
    const manager = await keeperOf(folder);
    const { updatedAt } = manager.kubelet()!;
    manager.close();
    const { stdout } = await numalign(['status', '--state-dir', folder]);
    expect(stdout).toContain(`on record since ${updatedAt}; process ${process.pid} (`);
    expect(stdout).toContain('default/web of the kubelet: CPUs 1');
  });

  it('shows the flag of a grant that lost CPUs to the kubelet', async () => {
    const folder = newFolder();
    const manager = await openManager({ stateDir: folder, managedCPUs: '0-1', sharedMember: false });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1, owner: 'persistent', name: 'mine' });
    await manager.recordKubelet([
      { namespace: 'default', name: 'web', containers: [{ name: 'main', cpus: grant.cpus }] },
    ]);
    const { stdout } = await numalign(['status', '--state-dir', folder]);
    expect(stdout).toContain(`the kubelet gave CPU ${grant.cpus} to default/web`);
  });
});

it('numalign state show has the changes of the record', async () => {
  const folder = newFolder();
  // Of a newer kubelet, the format has the same version before the record.
  const manager = await keeperOf(folder, { kubeletVersion: 'v1.36' });
  await manager.recordKubelet(pods.slice(1));
  const { stdout } = await numalign(['state', 'show', '--state-dir', folder]);
  expect(stdout).toContain('format version 3');
  expect(stdout).toContain("the whole state: 0 grants, 2 pods of the kubelet's");
  expect(stdout).toContain("new record of the kubelet's pods");
});

it('numalign topology counts the CPUs as exclusive, and its picture names their pods', async () => {
  const folder = newFolder();
  await keeperOf(folder);
  const { stdout } = await numalign(['topology', '--state-dir', folder, '--svg', `${folder}.svg`]);
  expect(stdout).toMatch(/^exclusive: +1 \(default\/web of the kubelet\)$/m);
  const svg = readFileSync(`${folder}.svg`, 'utf8');
  rmSync(`${folder}.svg`);
  expect(svg).toContain('CPU 1: default/web of the kubelet');
});
