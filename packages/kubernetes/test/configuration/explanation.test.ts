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
