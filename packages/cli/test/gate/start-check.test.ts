// needs: nothing
// numalign plan --config: the kubelet's start check. Each refusal has the field and the reason of the
// kubelet.
import { describe, expect, it } from 'vitest';
import { numalign } from '../numalign.js';
import { newFile } from '../pods.js';

const TWO_NODES = 'numa:2(memory=64GiB) core:4 pu:2';
const NINE_NODES = 'numa:9(memory=8GiB) core:4 pu:2';

const HEAD = 'kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n';
const STATIC = 'cpuManagerPolicy: static\nreservedSystemCPUs: "0"\n';
const RESERVED = 'systemReserved: {memory: 2Gi}\nkubeReserved: {memory: 2Gi}\n';
async function findings(text: string, machine = TWO_NODES, ...flags: string[]) {
  const config = newFile(`${HEAD}${text}`, 'kubelet.yaml');
  const args = ['plan', '--cpus', '1', '--synthetic', machine, '--config', config, ...flags];
  const { code, stdout, stderr } = await numalign(args);
  const lines = stderr.split('\n').slice(0, -1);
  expect([code, stdout === '']).toEqual(lines.length > 0 ? [1, true] : [0, false]);
  return lines.map((line) => line.replace(/^.*?kubelet\.yaml, line (\d+), column (\d+): /, '$1:$2 '));
}

describe('a kubelet would not start with', () => {
  it.each([
    ['reservedMemory that does not add up', `${STATIC}memoryManagerPolicy: Static\n${RESERVED}reservedMemory: [{numaNode: 0, limits: {memory: 3Gi}}]\n`, /^8:1 reservedMemory: its memory is 3Gi in all: it must be 4196Mi, kubeReserved \(2Gi\) \+ systemReserved \(2Gi\) \+ the eviction threshold \(100Mi\) \[ERR_INVALID_OPTION\]$/],
    ['Static memory without any', `${STATIC}memoryManagerPolicy: Static\n`, /^5:1 memoryManagerPolicy: Static needs reservedMemory: it must be 100Mi, /],
    ['hugepages that only one of the two reserves', `${STATIC}memoryManagerPolicy: Static\nkubeReserved: {hugepages-2Mi: 4Mi}\nreservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]\n`, /^7:1 reservedMemory: its hugepages-2Mi is 0 in all: it must be 4Mi/],
    ['memory of a node that there is not', 'reservedMemory: [{numaNode: 7, limits: {memory: 1Gi}}]\n', /^3:19 reservedMemory\[0\]\.numaNode must be a NUMA node of this machine, not 7/],
    ['no memory to reserve', 'reservedMemory: [{numaNode: 0, limits: {memory: 0}}]\n', /limits\.memory must be more than zero, not 0/],
    ['another type to reserve', 'reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]\n', /limits\.cpu: only memory and hugepages-<size> can be reserved/],
    ['memory of a node twice', 'reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {numaNode: 0, limits: {memory: 1Gi}}]\n', /^3:79 reservedMemory\[1\]\.limits\.memory: NUMA node 0 has another amount of memory/],
    ['a static policy without reserved CPUs', 'cpuManagerPolicy: static\n', /^3:1 cpuManagerPolicy: static needs reserved CPUs/],
    ['an unknown gate', 'featureGates: {PodLevelResourcess: true}\n', /^3:16 featureGates\.PodLevelResourcess: the kubelet v1\.37 has no such gate; did you mean "PodLevelResources"\?/],
    ['a locked gate', 'featureGates: {NodeSwap: false}\n', /featureGates\.NodeSwap must be true: it is locked in v1\.37, not false/],
    ['a gate that is no flag', 'featureGates: {NodeSwap: "true"}\n', /featureGates\.NodeSwap must be true or false, not 'true'/],
    ['an unknown CPU option', `${STATIC}cpuManagerPolicyOptions: {full-pcpu-only: "true"}\n`, /^5:27 cpuManagerPolicyOptions\.full-pcpu-only: the kubelet v1\.37 has no such option; did you mean "full-pcpus-only"\?/],
    ['an option without quotation marks', `${STATIC}cpuManagerPolicyOptions: {full-pcpus-only: true}\n`, /full-pcpus-only must be a text, in quotation marks/],
    ['an alpha option without its gate', `${STATIC}cpuManagerPolicyOptions: {align-by-socket: "true"}\n`, /needs the feature gate CPUManagerPolicyAlphaOptions for it/],
    ['a beta option with its gate off', `${STATIC}featureGates: {CPUManagerPolicyBetaOptions: false}\ncpuManagerPolicyOptions: {distribute-cpus-across-numa: "true"}\n`, /needs the feature gate CPUManagerPolicyBetaOptions for it/],
    ['options that exclude each other', `${STATIC}featureGates: {AllAlpha: true}\ncpuManagerPolicyOptions: {full-pcpus-only: "true", distribute-cpus-across-cores: "true"}\n`, /distribute-cpus-across-cores: it excludes full-pcpus-only/],
    ['sockets on one node', `${STATIC}featureGates: {AllAlpha: true}\ntopologyManagerPolicy: single-numa-node\ncpuManagerPolicyOptions: {align-by-socket: "true"}\n`, /align-by-socket: it excludes topologyManagerPolicy single-numa-node/],
    ['CPU options without the policy', 'cpuManagerPolicyOptions: {full-pcpus-only: "true"}\n', /^3:1 cpuManagerPolicyOptions: cpuManagerPolicy none has no options/],
    ['an option that is coming', `${STATIC}topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {restrict-to-cpu-numa-nodes: "true"}\n`, /^6:32 topologyManagerPolicyOptions\.restrict-to-cpu-numa-nodes: provisional: no kubelet has this option yet/],
    ['a strategy that is coming', `${STATIC}topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {numa-allocation-strategy: most-allocated}\n`, /^6:32 topologyManagerPolicyOptions\.numa-allocation-strategy: provisional: no kubelet has this option yet/],
    ['a field that is coming', 'memoryManagerPolicyOptions: {memory-drift-tolerance: auto}\n', /^3:1 memoryManagerPolicyOptions: provisional: no kubelet has this field yet/],
    ['a gate that is coming', 'featureGates: {MemoryManagerDriftTolerance: true}\n', /^3:16 featureGates\.MemoryManagerDriftTolerance: provisional: no kubelet has this gate yet/],
    ['a limit of nodes below 8', 'topologyManagerPolicy: restricted\ntopologyManagerPolicyOptions: {max-allowable-numa-nodes: "4"}\n', /must be a whole number of NUMA nodes, at least 8, not '4'/],
    ['an unknown policy', 'topologyManagerPolicy: strict\n', /^3:1 topologyManagerPolicy must be one of none, best-effort, restricted, single-numa-node, not 'strict'/],
    ['the policy of numalign alone', 'cpuManagerPolicy: dynamic\nreservedSystemCPUs: "0"\n', /cpuManagerPolicy must be one of none, static, not 'dynamic'/],
    ['a number as text', 'maxPods: "110"\n', /^3:1 maxPods must be a whole number, not '110'/],
    ['an amount as number', 'kubeReserved: {cpu: 1}\n', /^3:16 kubeReserved\.cpu must be a text, in quotation marks/],
    ['no duration', 'syncFrequency: 10\n', /syncFrequency must be a duration such as "10s", not 10/],
    ['a number out of range', 'oomScoreAdj: -2000\n', /oomScoreAdj must be -1000 to 1000, not -2000/],
    ['thresholds in the wrong order', 'imageGCHighThresholdPercent: 70\n', /imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent, which is 70, not 80/],
    ['a cgroup beside reserved CPUs', 'reservedSystemCPUs: "0"\nkubeReservedCgroup: /kube\n', /^3:1 reservedSystemCPUs: it excludes kubeReservedCgroup/],
    ['enforcement without its cgroup', 'enforceNodeAllocatable: [pods, kube-reserved]\n', /enforceNodeAllocatable\[1\]: kube-reserved needs kubeReservedCgroup/],
    ['unknown enforcement', 'enforceNodeAllocatable: [pod]\n', /enforceNodeAllocatable\[0\] must be one of none, pods, system-reserved/],
    ['an unknown swap behaviour', 'memorySwap: {swapBehavior: Unlimited}\n', /^3:14 memorySwap\.swapBehavior must be NoSwap or LimitedSwap, not 'Unlimited'/],
  ])('%s', async (_, text, line) => {
    const lines = await findings(text);
    expect(lines).toEqual([expect.stringMatching(line)]);
  }); // biome-ignore format: a table

  it('a gate of a later release', async () => {
    const text = 'featureGates: {H2CContainerProbe: true}\n';
    expect(await findings(text)).toEqual([]);
    expect(await findings(text, TWO_NODES, '--kubelet-version', 'v1.36')).toEqual([
      expect.stringMatching(/the kubelet v1\.36 has no such gate/),
    ]);
  });

  it('a field that there is not: it would have no effect', async () => {
    expect(await findings('cpuManagerPolcy: static\n')).toEqual([
      '3:1 cpuManagerPolcy: a KubeletConfiguration has no such field; did you mean "cpuManagerPolicy"? [ERR_INVALID_OPTION]',
    ]);
  });

  it('more than 8 NUMA nodes, unless it allows them', async () => {
    const policy = `${STATIC}topologyManagerPolicy: best-effort\n`;
    expect(await findings(policy, NINE_NODES)).toEqual([
      '5:1 topologyManagerPolicy: best-effort allows at most 8 NUMA nodes, and this machine has 9: set max-allowable-numa-nodes [ERR_INVALID_OPTION]',
    ]);
    expect(
      await findings(`${policy}topologyManagerPolicyOptions: {max-allowable-numa-nodes: "9"}\n`, NINE_NODES),
    ).toEqual([]);
    expect(await findings(policy, NINE_NODES, '--policy', 'none')).toEqual([]);
  });

  it('3Gi of reserved memory where 50Mi, 333Mi and 500Mi add up to 883Mi', async () => {
    const reserving = (first: string, second: string) =>
      findings(
        `${STATIC}memoryManagerPolicy: Static\nkubeReserved: {memory: 50Mi}\nsystemReserved: {memory: 333Mi}\nevictionHard: {memory.available: 500Mi}\nreservedMemory: [{numaNode: 0, limits: {memory: ${first}}}, {numaNode: 1, limits: {memory: ${second}}}]\n`,
      );
    const sum = 'kubeReserved (50Mi) + systemReserved (333Mi) + the eviction threshold (500Mi)';
    expect(await reserving('1Gi', '2Gi')).toEqual([
      `9:1 reservedMemory: its memory is 3Gi in all: it must be 883Mi, ${sum} [ERR_INVALID_OPTION]`,
    ]);
    expect(await reserving('500Mi', '383Mi')).toEqual([]);
  });

  it('all that is wrong, in one pass', async () => {
    const text =
      'cpuManagerPolicy: static\nmemoryManagerPolicy: Static\ntopologyManagerScope: pods\nmaxPods: -1\n';
    const lines = await findings(text);
    expect(lines.map((line) => line.replace(/^(\S+ \w+).*/, '$1'))).toEqual([
      '6:1 maxPods',
      '5:1 topologyManagerScope',
      '3:1 cpuManagerPolicy',
      '4:1 memoryManagerPolicy',
    ]);
  });
});

describe('a kubelet starts with', () => {
  it.each([
    ['nothing but the head', ''],
    ['reserved memory that adds up', `${STATIC}memoryManagerPolicy: Static\n${RESERVED}reservedMemory: [{numaNode: 0, limits: {memory: 4Gi}}, {numaNode: 1, limits: {memory: 100Mi}}]\n`],
    ['a threshold of its own', `${STATIC}memoryManagerPolicy: Static\nevictionHard: {memory.available: 1%}\nreservedMemory: [{numaNode: 0, limits: {memory: "1374389534"}}]\n`],
    ['no threshold', `${STATIC}memoryManagerPolicy: Static\nkubeReserved: {memory: 1Gi}\nevictionHard: {nodefs.available: 10%}\nreservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]\n`],
    ['alpha options and their gate', `${STATIC}featureGates: {CPUManagerPolicyAlphaOptions: true}\ncpuManagerPolicyOptions: {align-by-socket: "true"}\n`],
    ['gates of resizing', 'featureGates: {InPlacePodVerticalScalingExclusiveCPUs: true, InPlacePodVerticalScalingExclusiveMemory: true}\n'],
    ['fields that do not matter here', 'authentication: {anonymous: {enabled: false}}\nclusterDNS: [10.0.0.10]\nsyncFrequency: 1m0s\nfailSwapOn: false\nevictionSoft: null\n'],
  ])('%s', async (_, text) => {
    expect(await findings(text)).toEqual([]);
  }); // biome-ignore format: a table
});

it('--lenient plans with what is coming', async () => {
  const text = `${STATIC}memoryManagerPolicyOptions: {memory-drift-tolerance: auto}
topologyManagerPolicy: restricted
topologyManagerPolicyOptions: {restrict-to-cpu-numa-nodes: "true", numa-allocation-strategy: least-allocated}
`;
  expect(await findings(text, TWO_NODES, '--lenient')).toEqual([]);
});

it('--lenient plans as if the kubelet started', async () => {
  const text = 'cpuManagerPolicy: static\nmaxPods: -1\n';
  expect(await findings(text, TWO_NODES, '--lenient')).toEqual([]);
});
