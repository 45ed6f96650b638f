import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { expect, it, onTestFinished } from 'vitest';
import { explain } from '../../lib/configuration/explanation.js';
import { reportedPod } from '../../lib/placement/manifest.js';
import { parseRules } from '../../lib/placement/rules.js';

const container = (name: string, resources: object = {}) => ({ name, image: 'i', resources });

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'upf', namespace: 'telecom', labels: { app: 'upf' } },
  spec: {
    initContainers: [container('setup', { limits: { cpu: 1, memory: '64Mi' } })],
    containers: [
      container('packets', { limits: { cpu: '2', memory: '1Gi', 'hugepages-2Mi': '4Mi' } }),
      container('control', { limits: { cpu: '500m', memory: '64Mi' } }),
    ],
  },
};

async function viewOf() {
  const topology = await discover({ synthetic: 'numa:2(memory=8GB) core:4 pu:1' });
  const view = await openManager({ topology, readOnly: true, stateDir: null });
  onTestFinished(() => view.close());
  return view;
}

// The machine has no hugepages.
const PLAIN = structuredClone(POD);
PLAIN.spec.containers[0] = container('packets', { limits: { cpu: '2', memory: '1Gi' } });

async function explained(rules: object[], pod: object = PLAIN) {
  const policy = { placement: {}, rules: parseRules(rules, 'rules') };
  return explain([reportedPod(pod)], policy, await viewOf());
}

it('A manifest is reported as a runtime reports what a kubelet makes of it', () => {
  const { pod, containers } = reportedPod(POD);
  expect(pod).toMatchObject({ namespace: 'telecom', linux: { cgroup_parent: '/kubepods/podpod' } });
  expect(containers.map(({ name }) => name)).toEqual(['setup', 'packets', 'control']);
  expect(containers[1]!.linux!.resources).toMatchObject({
    cpu: { shares: { value: 2048 }, quota: { value: 200_000 } },
    memory: { limit: { value: 2 ** 30 } },
    hugepage_limits: [{ page_size: '2MB', limit: 4 * 2 ** 20 }],
  });
  const burstable = { ...POD, spec: { containers: [container('a', { requests: { cpu: 1 } })] } };
  expect(reportedPod(burstable).pod.linux!.cgroup_parent).toBe('/kubepods/burstable/podpod');
});

it('An explanation names the rule of each container, why not those before, and what it would get', async () => {
  const rules = [
    { name: 'others', match: { namespaces: 'web', labels: { app: '*' } }, exclusive: 4 },
    { name: 'packets', match: { containers: 'packets' }, cpus: '4-7', policy: 'single-numa-node' },
    { name: 'rest', match: { namespaces: 'telecom' }, exclusive: false, pool: 'numa-node' },
  ];
  const [setup, packets, control] = await explained(rules);
  expect(setup).toMatchObject({
    rule: 'rest',
    exclusiveCpus: 0,
    pool: 'numa-node',
    cpus: null,
    refusal: null,
  });
  expect(setup!.passedOver).toEqual([
    { rule: 'others', unmet: ['namespaces'] },
    { rule: 'packets', unmet: ['containers'] },
  ]);
  expect(packets).toMatchObject({
    ...{ rule: 'packets', exclusiveCpus: 2, within: '4-7', cpus: '4-5', refusal: null },
    options: { policy: 'single-numa-node' },
  });
  expect(control).toMatchObject({ rule: 'rest' });
});

it('An explanation says why a container would be refused', async () => {
  const [, packets] = await explained([{ cpus: '7' }]);
  expect(packets!.refusal).toMatchObject({ code: 'ERR_INSUFFICIENT_CPUS' });
  const annotations = { 'numalign.io/cpus': '2' };
  const [wrong] = await explained([], { ...PLAIN, metadata: { ...POD.metadata, annotations } });
  expect(wrong).toMatchObject({ rule: null, refusal: { code: 'ERR_INVALID_ANNOTATION' } });
});

/** `pod` as `--whole-pods` has it, on a machine of two nodes of four CPUs. */
async function explainedWhole(
  pod: typeof PLAIN,
  { rules = [] as object[], hasClaims = false, scope = 'pod' } = {},
) {
  const topology = await discover({ synthetic: 'numa:2(memory=8GB) core:4 pu:1' });
  const policy = { policy: 'single-numa-node', scope: scope as 'pod' } as const;
  const view = await openManager({ topology, readOnly: true, stateDir: null, ...policy });
  onTestFinished(() => view.close());
  const manifest = { ...pod, metadata: { ...pod.metadata, uid: 'pod' } };
  const asked = { placement: {}, rules: parseRules(rules, 'rules') };
  return explain([{ ...reportedPod(pod), whole: { manifest, hasClaims } }], asked, view);
}

const podOf = (cpus: number[], more: object = {}, annotations: Record<string, string> = {}) => ({
  ...PLAIN,
  metadata: { ...POD.metadata, annotations },
  spec: {
    initContainers: [],
    containers: cpus.map((cpu, i) => container(`c${i}`, { limits: { cpu, memory: '64Mi' } })),
    ...more,
  },
});

it('The containers of a whole pod are explained as one pod: together they fit one node, or none does', async () => {
  const fitting = await explainedWhole(podOf([3, 1]));
  expect(fitting).toMatchObject([
    { pod: 'telecom/upf', container: 'c0', wholePod: true, oneByOne: null, refusal: null },
    { container: 'c1', wholePod: true, refusal: null },
  ]);
  expect(fitting.map(({ cpus }) => cpus).sort()).toEqual(['0-2', '3']);
  const tooLarge = await explainedWhole(podOf([3, 2]));
  expect(tooLarge.map(({ refusal }) => refusal?.code)).toEqual(Array(2).fill(tooLarge[0]!.refusal!.code));
  expect(tooLarge[0]!.refusal).not.toBeNull();
  // One by one they would have a node each.
  const alone = await explained([], podOf([3, 2]));
  expect(alone).toMatchObject([
    { wholePod: false, oneByOne: null, cpus: '0-2' },
    { wholePod: false, refusal: null },
  ]);
});

it('A whole pod gives the CPUs of init containers to the others, and shared ones none', async () => {
  const pod = podOf([4, 0.5], {
    initContainers: [container('setup', { limits: { cpu: 4, memory: '64Mi' } })],
  });
  expect(await explainedWhole(pod)).toMatchObject([
    { container: 'setup', cpus: '0-3' },
    { container: 'c0', cpus: '0-3' },
    { container: 'c1', exclusiveCpus: 0, cpus: null, refusal: null },
  ]);
});

it('An explanation says why the containers of a pod are placed one by one', async () => {
  const burstable = podOf([]);
  burstable.spec.containers = [container('a', { requests: { cpu: 1 } })];
  expect(await explainedWhole(burstable)).toMatchObject([
    { wholePod: false, oneByOne: 'the pod is not Guaranteed' },
  ]);
  const claims = podOf([1], { resourceClaims: [{ name: 'x', resourceClaimName: 'y' }] });
  expect(await explainedWhole(claims, { hasClaims: true })).toMatchObject([
    { wholePod: false, oneByOne: 'the pod has claims', cpus: '0' },
  ]);
  const rules = [{ match: { containers: 'c0' }, cpus: '4-7' }, { cpus: '0-3' }];
  expect(await explainedWhole(podOf([1, 1]), { rules })).toMatchObject([
    { wholePod: false, oneByOne: expect.stringMatching(/ask for different things/), cpus: '4' },
    { wholePod: false, cpus: '0' },
  ]);
});

it('A wrong annotation of one container refuses its whole pod', async () => {
  const pod = podOf([1, 1], {}, { 'numalign.io/cpu.c1': 'x' });
  const answers = await explainedWhole(pod);
  expect(answers.map(({ refusal }) => refusal?.code)).toEqual(Array(2).fill('ERR_INVALID_ANNOTATION'));
});

it('What the planner refuses to plan of a whole pod refuses it, and not its containers one by one', async () => {
  const rules = [{ cpuManagerPolicyOptions: { 'align-by-socket': true } }];
  const answers = await explainedWhole(podOf([1, 1]), { rules });
  const refused = { cpus: null, refusal: { code: 'ERR_INVALID_OPTION' } };
  expect(answers).toMatchObject(Array(2).fill({ wholePod: true, oneByOne: null, ...refused }));
});
