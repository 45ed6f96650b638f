// The findings about a node, from its facts.
import { describe, expect, it } from 'vitest';
import { isNriDisabled, requiredPlugins } from '../../lib/check/containerd-configuration.js';
import { judge } from '../../lib/check/judge.js';
import type { ClusterFacts, NodeFacts, SocketFacts } from '../../lib/check/node-facts.js';

const socket = (state: SocketFacts['state'] = 'listens'): SocketFacts => ({ path: '/run/a.sock', state });

const KUBELET: NodeFacts['kubelet'] = {
  folder: '/var/lib/kubelet',
  exists: true,
  cpuPolicy: 'none',
  memoryPolicy: 'None',
  devicePlugins: socket(),
  podResources: socket(),
  isService: true,
};
const CLUSTER: ClusterFacts = {
  nodeName: 'worker-1',
  publishes: true,
  failure: null,
  hasNode: true,
  missingVerbs: [],
  hasDefinition: true,
};
const GOOD: NodeFacts = {
  nri: socket(),
  runtime: socket(),
  runtimeVersion: { name: 'containerd', version: '1.7.24' },
  isNriDisabled: false,
  neighbours: [],
  pluginName: 'numalign',
  requiredPlugins: [],
  configuration: '/etc/containerd/config.toml',
  cgroups: { version: 2, controllers: ['cpuset', 'cpu', 'memory'], areProcessesHidden: false },
  kubelet: KUBELET,
  stateFolder: { path: '/run/numalign', refusal: null },
  user: 0,
  cluster: CLUSTER,
};

/** The one check that a change of the good facts makes worse, as `STATUS CHECK`. */
function worse(change: Partial<NodeFacts>): { what: string; found: string; advice: string | null } {
  const findings = judge({ ...GOOD, ...change }).filter(({ status }) => status !== 'ok');
  expect(findings.map(({ check }) => check)).toHaveLength(1);
  const [{ status, check, found, advice }] = findings as [(typeof findings)[number]];
  return { what: `${status} ${check}`, found, advice };
}

const kubelet = (change: Partial<NodeFacts['kubelet']>) => ({ kubelet: { ...KUBELET, ...change } });
const cluster = (change: Partial<ClusterFacts>) => ({ cluster: { ...CLUSTER, ...change } });

describe('a node', () => {
  it('is good if everything is there, without advice', () => {
    const findings = judge(GOOD);
    expect(findings.filter(({ status, advice }) => status !== 'ok' || advice !== null)).toEqual([]);
    expect(findings.map(({ check }) => check)).toEqual([
      ...[
        'privilege',
        'state-folder',
        'runtime-socket',
        'runtime-version',
        'nri-socket',
        'cpuset-controller',
        'neighbours',
        'required-plugins',
      ],
      ...['cpu-manager', 'memory-manager', 'pod-resources', 'device-plugins'],
      ...['api-server', 'definition', 'rights', 'node'],
    ]);
    expect(judge({ ...GOOD, cluster: null }).map(({ group }) => group)).not.toContain('cluster');
  });

  it('may have a kubelet that places containers, and no NRI, if they are left to it', () => {
    const facts: NodeFacts = {
      ...{ ...GOOD, nri: null, runtimeVersion: { name: 'containerd', version: '1.6.20' } },
      ...kubelet({ cpuPolicy: 'static', memoryPolicy: 'Static' }),
    };
    expect(judge(facts).filter(({ status }) => status !== 'ok')).toEqual([]);
  });

  it.each<[string, Partial<NodeFacts>, string, string]>([
    ['a user who is not root', { user: 1000 }, 'warning privilege', 'run it as root'],
    [
      'a closed state folder',
      { stateFolder: { path: '/run/numalign', refusal: 'EACCES' } },
      'problem state-folder',
      'hostPath',
    ],
    [
      'a runtime that is not there',
      { runtime: socket('absent') },
      'warning runtime-socket',
      'CONTAINER_RUNTIME_ENDPOINT',
    ],
    [
      'a runtime that says nothing',
      { runtimeVersion: null },
      'unknown runtime-version',
      'CONTAINER_RUNTIME_ENDPOINT',
    ],
    [
      'containerd 1.6',
      { runtimeVersion: { name: 'containerd', version: 'v1.6.20' } },
      'problem runtime-version',
      'numalign-node attach',
    ],
    [
      'CRI-O 1.25',
      { runtimeVersion: { name: 'cri-o', version: '1.25.9' } },
      'problem runtime-version',
      'numalign-node attach',
    ],
    ['an NRI socket of others', { nri: socket('forbidden') }, 'problem nri-socket', 'root'],
    [
      'NRI that is switched off',
      { nri: socket('absent'), isNriDisabled: true },
      'problem nri-socket',
      'set `disable = false`',
    ],
    [
      'NRI that containerd 1.7 has off by itself',
      { nri: socket('absent'), isNriDisabled: null },
      'problem nri-socket',
      'add [plugins."io.containerd.nri.v1.nri"]',
    ],
    ['a runtime that is stopped', { nri: socket('refused') }, 'problem nri-socket', 'start the runtime'],
    [
      'containerd 2.0 without a socket',
      {
        ...{ nri: socket('absent'), isNriDisabled: null },
        runtimeVersion: { name: 'containerd', version: '2.0.1' },
      },
      'problem nri-socket',
      'start the runtime',
    ],
    [
      'cgroup v1 without cpuset',
      { cgroups: { version: 1, controllers: ['cpu'], areProcessesHidden: false } },
      'problem cpuset-controller',
      'mount -t cgroup',
    ],
    [
      'cgroup v1 in a pid namespace of its own',
      { cgroups: { version: 1, controllers: ['cpuset'], areProcessesHidden: true } },
      'problem cpuset-controller',
      'hostPID: true',
    ],
    [
      'cgroup v2 without cpuset',
      { cgroups: { version: 2, controllers: ['cpu'], areProcessesHidden: false } },
      'problem cpuset-controller',
      'CONFIG_CPUSETS',
    ],
    [
      'a static kubelet',
      kubelet({ cpuPolicy: 'static' }),
      'problem cpu-manager',
      'set cpuManagerPolicy: none in its configuration, drain the node, stop the kubelet, remove /var/lib/kubelet/cpu_manager_state, and `systemctl restart kubelet`',
    ],
    [
      'a static kubelet that systemd does not know',
      kubelet({ cpuPolicy: 'static', isService: false }),
      'problem cpu-manager',
      'and start it again',
    ],
    [
      'a kubelet that books memory',
      kubelet({ memoryPolicy: 'Static' }),
      'problem memory-manager',
      'memoryManagerPolicy: None',
    ],
    ['no PodResources', kubelet({ podResources: socket('absent') }), 'warning pod-resources', 'hostPath'],
    [
      'no device plugins',
      kubelet({ devicePlugins: socket('forbidden') }),
      'warning device-plugins',
      'as root',
    ],
    [
      'no definition of the resource',
      cluster({ hasDefinition: false }),
      'problem definition',
      'noderesourcetopologies.yaml',
    ],
    [
      'no right to create',
      cluster({ missingVerbs: ['create noderesourcetopologies'] }),
      'problem rights',
      'the chart gives these rights',
    ],
    [
      'no right to write the status of claims',
      cluster({ missingVerbs: ['create events', 'associated-node:patch resourceclaims/driver'] }),
      'warning rights',
      'deploy/kustomize/claims',
    ],
    ['no Node of the name', cluster({ hasNode: false }), 'problem node', 'spec.nodeName'],
    ['a Node that may not be read', cluster({ hasNode: null }), 'warning node', 'get nodes'],
  ])('with %s gets advice', (_title, change, what, advice) => {
    const finding = worse(change);
    expect(finding.what).toBe(what);
    expect(finding.advice).toContain(advice);
  });

  it('with an unreadable kubelet is not judged', () => {
    expect(worse(kubelet({ cpuPolicy: { error: 'EACCES' } }))).toMatchObject({ what: 'unknown cpu-manager' });
    expect(worse(kubelet({ memoryPolicy: { error: 'EACCES' } })).found).toContain('EACCES');
  });

  it('without a kubelet needs none', () => {
    const missing = { exists: false, cpuPolicy: null, memoryPolicy: null };
    const sockets = { devicePlugins: socket('absent'), podResources: socket('absent') };
    expect(
      judge({ ...GOOD, ...kubelet({ ...missing, ...sockets }) }).filter(({ status }) => status !== 'ok'),
    ).toEqual([]);
  });

  it.each([
    ['ERR_NOT_IN_CLUSTER', 'service account'],
    ['ERR_API_TLS', 'CA'],
    ['ERR_API_UNAUTHORIZED', 'token'],
    ['ERR_API_SERVER', 'log of the API server'],
  ])('whose API server fails with %s has one finding about it', (code, advice) => {
    const findings = judge({ ...GOOD, ...cluster({ failure: { code, message: 'why' } }) });
    const [first, ...others] = findings.filter(({ group }) => group === 'cluster');
    expect(first).toMatchObject({
      status: 'problem',
      found: `${code}: why`,
      advice: expect.stringContaining(advice),
    });
    expect(others.map(({ status }) => status)).toEqual(['unknown', 'unknown', 'unknown']);
  });
});

describe("containerd's configuration", () => {
  const table = '[plugins."io.containerd.nri.v1.nri"]';
  it.each([
    ['', null],
    ['version = 2\ndisable = true', null],
    [`[plugins]\n  ${table}\n    disable = true # as it comes`, true],
    [`${table}\ndisable = false`, false],
    [`${table}\n# disable = true`, null],
    ["[plugins.'io.containerd.nri.v1.nri']\n  disable=true", true],
    [`${table}\n[plugins."io.containerd.grpc.v1.cri"]\ndisable = true`, null],
    [`[ plugins . "io.containerd.nri.v1.nri" ]\ndisable = true`, true],
    [`${table}\ndisable_connections = true`, null],
  ])('%j says that NRI is off: %s', (text, expected) => {
    expect(isNriDisabled(text)).toBe(expected);
  });
});

describe('other programs that place CPUs', () => {
  const balloons = { name: 'nri-resource-policy-balloons', at: 'pid 7', isPlacing: true };
  const logger = { name: 'logger', at: '/opt/nri/plugins/10-logger', isPlacing: false };

  it('are a problem, and named', () => {
    const { what, found } = worse({ neighbours: [logger, balloons] });
    expect(what).toBe('problem neighbours');
    expect(found).toMatch(/^nri-resource-policy-balloons \(pid 7\) places CPUs of containers, too/);
  });

  it('are a warning if they only may', () => {
    const { what, found } = worse({ neighbours: [logger] });
    expect(what).toBe('warning neighbours');
    expect(found).toBe('logger (/opt/nri/plugins/10-logger) is a plugin of the runtime, too');
  });

  it('may be required by the runtime, as numalign may', () => {
    const { what, found } = worse({ requiredPlugins: ['numalign', 'balloons'] });
    expect(what).toBe('warning required-plugins');
    expect(found).toMatch(/without the plugin balloons$/);
    const findings = judge({ ...GOOD, requiredPlugins: ['numalign'] });
    expect(findings.find(({ check }) => check === 'required-plugins')?.found).toMatch(
      /while numalign is away$/,
    );
  });

  it("are read from containerd's configuration", () => {
    const table = "[plugins.'io.containerd.nri.v1.nri'.default_validator]";
    const list = '  required_plugins = [ "numalign", \'other\' ] # both';
    expect(requiredPlugins(`${table}\n  enable = true\n${list}`)).toEqual(['numalign', 'other']);
    expect(requiredPlugins(`${table}\n  enable = false\n${list}`)).toEqual([]);
    expect(requiredPlugins(`${table}\nenable = true\n[plugins.x]\n${list}`)).toEqual([]);
    expect(isNriDisabled(`${table}\n  disable = true`)).toBe(null);
  });
});
