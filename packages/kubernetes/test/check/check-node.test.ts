// The facts of a node, read from folders and sockets of the test.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CpuSet } from 'numalign';
import { formatCpuManagerState, formatMemoryManagerState } from 'numalign/kubelet';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { ApiError } from '../../lib/api-server/api-error.js';
import { checkNode } from '../../lib/check/check-node.js';
import type { CheckOptions } from '../../lib/check/check-options.js';
import { readNodeFacts } from '../../lib/check/read-facts.js';
import { socketFacts } from '../../lib/check/socket-facts.js';

let folder: string;
const at = (name: string) => join(folder, name);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-check-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

/** How many have connected. */
async function listen(path: string): Promise<() => number> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  return () => connections;
}

const options = (): CheckOptions => ({
  nriSocket: at('nri.sock'),
  runtimeEndpoint: `unix://${at('containerd.sock')}`,
  containerdConfiguration: at('config.toml'),
  kubeletFolder: at('kubelet'),
  stateDir: at('numalign'),
  cgroupMount: at('cgroup'),
  neighbours: { pluginFolder: at('plugins'), procFolder: at('proc'), clients: async () => [] },
});

/** The file of a socket whose process has died. */
function leaveBehind(path: string): void {
  const program = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', program, path]);
}

describe('a socket', () => {
  it('listens, is left behind, is no socket, or is missing', async () => {
    await listen(at('live.sock'));
    leaveBehind(at('left.sock'));
    writeFileSync(at('file'), '');
    const names = ['live.sock', 'left.sock', 'file', 'none.sock'];
    const states = await Promise.all(names.map(async (name) => (await socketFacts(at(name))).state));
    expect(states).toEqual(['listens', 'refused', 'no-socket', 'absent']);
  });

  it('gets no connection if it listens, even below a symbolic link', async () => {
    mkdirSync(at('run'));
    symlinkSync('run', at('var'));
    const connections = await listen(at('run/live.sock'));
    expect((await socketFacts(at('var/live.sock'))).state).toBe('listens');
    // One that is connected to is counted before this one.
    const own = await new Promise<Socket>((resolve) => {
      const socket = connect(at('run/live.sock'), () => resolve(socket));
    });
    onTestFinished(() => void own.destroy());
    await expect.poll(connections).toBe(1);
  });
});

describe('the facts', () => {
  it('of an empty folder say that everything is missing', async () => {
    expect(await readNodeFacts(options())).toMatchObject({
      nri: { state: 'absent' },
      runtime: { path: at('containerd.sock'), state: 'absent' },
      runtimeVersion: null,
      isNriDisabled: null,
      cgroups: { version: 1, controllers: [] },
      kubelet: { exists: false, cpuPolicy: null, memoryPolicy: null },
      stateFolder: { refusal: null },
      user: process.getuid!(),
      cluster: null,
    });
  });

  it('of a node are in its sockets, configuration, cgroups and the files of the kubelet', async () => {
    mkdirSync(at('kubelet/pod-resources'), { recursive: true });
    mkdirSync(at('cgroup'));
    writeFileSync(at('cgroup/cgroup.controllers'), 'cpuset cpu io\n');
    writeFileSync(at('config.toml'), '[plugins."io.containerd.nri.v1.nri"]\n  disable = true\n');
    const cpus = { policyName: 'static', defaultCpuSet: CpuSet.parse('0-3'), entries: new Map() };
    writeFileSync(at('kubelet/cpu_manager_state'), formatCpuManagerState(cpus));
    const memory = { policyName: 'None', machineState: new Map(), entries: new Map() };
    writeFileSync(at('kubelet/memory_manager_state'), formatMemoryManagerState(memory));
    await listen(at('nri.sock'));
    await listen(at('kubelet/pod-resources/kubelet.sock'));
    await listen(at('containerd.sock'));
    const version = { name: 'containerd', version: '1.7.24' };
    const asked: string[] = [];
    const facts = await readNodeFacts(options(), async (path) => {
      asked.push(path);
      return version;
    });
    expect(asked).toEqual([at('containerd.sock')]);
    expect(facts).toMatchObject({
      nri: { state: 'listens' },
      runtimeVersion: version,
      isNriDisabled: true,
      cgroups: { version: 2, controllers: ['cpuset', 'cpu', 'io'] },
      kubelet: {
        ...{ exists: true, cpuPolicy: 'static', memoryPolicy: 'None' },
        ...{ podResources: { state: 'listens' }, devicePlugins: { state: 'absent' } },
      },
    });
  });

  it('of cgroup v1 name the controllers that share a folder one by one', async () => {
    for (const name of ['cpu,cpuacct', 'cpuset']) mkdirSync(at(`cgroup/${name}`), { recursive: true });
    const { cgroups } = await readNodeFacts(options());
    expect(cgroups).toMatchObject({ version: 1, controllers: ['cpu', 'cpuacct', 'cpuset'] });
  });

  it('of a damaged file of the kubelet have the reason, and of an empty one nothing', async () => {
    mkdirSync(at('kubelet'));
    writeFileSync(at('kubelet/cpu_manager_state'), '{"policyName":"static"');
    writeFileSync(at('kubelet/memory_manager_state'), '');
    const { kubelet } = await readNodeFacts(options());
    expect(kubelet.cpuPolicy).toEqual({ error: expect.stringContaining('cpu_manager_state') });
    expect(kubelet.memoryPolicy).toBeNull();
  });

  it('of a state folder that is a file say that it is unusable', async () => {
    writeFileSync(at('numalign'), '');
    expect((await readNodeFacts(options())).stateFolder.refusal).toBe('it is not a folder');
  });
});

describe('publishing', () => {
  const allowed = async (_resource: unknown, review: any) => {
    const { verb, resource } = review.spec.resourceAttributes;
    return {
      metadata: { name: '' },
      status: { allowed: `${verb} ${resource}` !== 'patch noderesourcetopologies' },
    };
  };
  const refusal = (code: 'ERR_API_NOT_FOUND' | 'ERR_API_FORBIDDEN') => async () => {
    throw new ApiError(code, 'no');
  };

  it('outside of a cluster is a problem, and no error', async () => {
    const findings = await checkNode({ ...options(), publish: { nodeName: 'worker-1' } });
    expect(findings.filter(({ group }) => group === 'cluster')[0]).toMatchObject({
      ...{ check: 'api-server', status: 'problem' },
      found: expect.stringContaining('ERR_NOT_IN_CLUSTER'),
    });
  });

  it('is checked for rights and objects at the API server', async () => {
    const apiServer = {
      create: allowed,
      list: refusal('ERR_API_NOT_FOUND'),
      get: refusal('ERR_API_FORBIDDEN'),
    };
    const findings = await checkNode({ ...options(), publish: { apiServer, nodeName: 'worker-1' } });
    const cluster = findings.filter(({ group }) => group === 'cluster');
    expect(cluster.map(({ check, status }) => `${status} ${check}`)).toEqual([
      'ok api-server',
      'problem definition',
      'problem rights',
      'warning node',
    ]);
    expect(cluster[2]!.found).toContain('patch noderesourcetopologies');
    expect(cluster[2]!.found).not.toContain('create');
  });

  it('is checked with the names that a right is limited to', async () => {
    const reviews: unknown[] = [];
    const apiServer = {
      create: async (_: unknown, { spec }: any) => {
        reviews.push(spec.resourceAttributes);
        return { metadata: { name: '' }, status: { allowed: true } };
      },
      list: async () => [],
      get: async () => ({ metadata: { name: 'worker-1' } }),
    };
    await checkNode({ ...options(), claims: { apiServer, nodeName: 'worker-1' } });
    expect(reviews).toContainEqual({
      ...{ verb: 'associated-node:patch', group: 'resource.k8s.io' },
      ...{ resource: 'resourceclaims', subresource: 'driver', name: 'numalign.io' },
    });
  });
});
