// needs: nothing
// numalign plan is a gate as strict as the cluster: the API server would refuse these manifests for the
// same field and reason, and the scheduler would find no machine.
import { describe, expect, it } from 'vitest';
import { numalign } from '../numalign.js';
import { documents, newFile, pod } from '../pods.js';

const MACHINE = ['--synthetic', 'numa:2(memory=64GiB) core:4 pu:2'];

async function planned(text: string, ...flags: string[]) {
  const { code, stdout, stderr } = await numalign(['plan', '-f', newFile(text), ...MACHINE, ...flags]);
  const lines = stderr.split('\n').slice(0, -1);
  return {
    code,
    stdout,
    lines: lines.map((line) => line.replace(/^.*?pods\.yaml, line (\d+), column (\d+): /, '$1:$2 ')),
  };
}

/** A pod of one container with these resources, on line 7. */
const podOf = (resources: string, metadata = 'name: a') => `apiVersion: v1
kind: Pod
metadata: {${metadata}}
spec:
  containers:
    - name: c
      resources: {${resources}}
`;
const FULL = 'cpu: 2, memory: 4Gi';

describe('a cluster refuses', () => {
  it.each([
    ['cpus', podOf(`limits: {cpus: 2, memory: 4Gi}`), /^7:28 spec\.containers\[0\]\.resources\.limits must be keyed by cpu .*, not 'cpus' \[ERR_INVALID_POD\]$/],
    ['Memory', podOf('limits: {cpu: 2, Memory: 4Gi}'), /must be keyed by memory .*, not 'Memory'/],
    ['hugepages-2M', podOf(`limits: {${FULL}, hugepages-2M: 4Mi}`), /must be named hugepages-2Mi .*, not 'hugepages-2M'/],
    ['a limit below the request', podOf(`requests: {cpu: 4}, limits: {${FULL}}`), /^7:30 spec\.containers\[0\]\.resources\.requests\.cpu must be at most its limit 2, not 4/],
    ['devices that are overcommitted', podOf(`requests: {example.com/gpu: 1}, limits: {${FULL}, example.com/gpu: 2}`), /requests\.example\.com\/gpu must be its limit 2, not 1/, '--device', 'example.com/gpu=class:0300'],
    ['devices of no machine', podOf(`limits: {${FULL}, example.com/gpu: 1}`), /^7:49 spec\.containers\[0\]\.resources\.limits\.example\.com\/gpu: no device is example\.com\/gpu here: say which are, such as --device/],
    ['a name in capitals', podOf(`limits: {${FULL}}`, 'name: Web'), /^3:12 metadata\.name must be at most 253 lower-case letters, .*, not 'Web'/],
    ['a name that is too long', podOf(`limits: {${FULL}}`, `name: ${'a'.repeat(254)}`), /metadata\.name must be/],
    ['a namespace with dots', podOf(`limits: {${FULL}}`, 'name: a, namespace: a.b'), /metadata\.namespace must be at most 63/],
    ['a label that is no text', podOf(`limits: {${FULL}}`, 'name: a, labels: {numa: true}'), /^3:30 metadata\.labels\.numa must be a text of at most 63 .*, not true/],
    ['a label that is too long', podOf(`limits: {${FULL}}`, `name: a, labels: {numa: ${'a'.repeat(64)}}`), /metadata\.labels\.numa must be a text/],
    ['the key of a label', podOf(`limits: {${FULL}}`, 'name: a, labels: {"-numa": "1"}'), /metadata\.labels must be keyed by .*, not '-numa'/],
    ['the domain of a key', podOf(`limits: {${FULL}}`, 'name: a, labels: {"Example.com/numa": "1"}'), /not 'Example\.com\/numa'/],
    ['an annotation that is no text', podOf(`limits: {${FULL}}`, 'name: a, annotations: {numalign.io/movable: true}'), /metadata\.annotations\.numalign\.io\/movable must be a text, in quotation marks/],
    ['the name of a container', podOf(`limits: {${FULL}}`).replace('name: c', 'name: C'), /^6:7 spec\.containers\[0\]\.name must be 1 to 63 lower-case letters/],
    ['a long CronJob', `apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: ${'a'.repeat(53)}}\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c}]}}}}}\n`, /^3:12 metadata\.name must be at most 52/],
    ['less for the pod than for its container', `${podOf(`limits: {${FULL}}`)}  resources: {requests: {cpu: 1}, limits: {cpu: 2, memory: 8Gi}}\n`, /^8:26 spec\.resources\.requests\.cpu must be at least what its containers request/],
  ])('%s', async (_, text, line, ...flags) => {
    const { code, stdout, lines } = await planned(text, ...(flags as string[]));
    expect([code, stdout, lines]).toEqual([1, '', [expect.stringMatching(line)]]);
  }); // biome-ignore format: a table

  it('all that is wrong in all documents, and a configuration beside them', async () => {
    const first = podOf(
      'requests: {cpu: 4}, limits: {cpu: 2, Memory: 4Gi, hugepages-2M: 4Mi}',
      'name: A, labels: {"": x}',
    );
    const second = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web_1}
spec:
  template:
    metadata: {labels: {app: "a b"}}
    spec:
      initContainers: [{name: c, resources: {limits: {cpus: 1}}}]
      containers: [{name: c, resources: {limits: {memory: 1x}}}]
`;
    const config = newFile('kind: KubeletConfiguration\ncpuManagerPolicy: static\n', 'kubelet.yaml');
    const { code, stdout, lines } = await planned(documents(first, second), '--config', config);
    expect([code, stdout]).toEqual([1, '']);
    expect(lines.map((line) => /^\S+ (spec\.template: )?([\w.[\]/-]+)/.exec(line)?.[0])).toEqual([
      expect.stringContaining('numalign:'),
      '3:12 metadata.name',
      '3:21 metadata.labels',
      '7:30 spec.containers[0].resources.requests.cpu',
      '7:56 spec.containers[0].resources.limits',
      '7:69 spec.containers[0].resources.limits',
      '11:12 metadata.name',
      '14:25 spec.template: metadata.labels.app',
      '16:55 spec.template: spec.initContainers[0].resources.limits',
      '17:51 spec.template: spec.containers[0].resources.limits.memory',
      '17:21 spec.template: spec.containers[0].name',
    ]);
  });

  it('as JSON too, with the place of each', async () => {
    const file = newFile(podOf('limits: {cpus: 2, Memory: 4Gi}'));
    const { stderr } = await numalign(['plan', '-f', file, ...MACHINE, '--output', 'json']);
    const { error } = JSON.parse(stderr);
    expect(error.code).toBe('ERR_INVALID_POD');
    expect(error.details.findings).toMatchObject([
      { code: 'ERR_INVALID_POD', field: 'spec.containers[0].resources.limits.cpus', line: 7, column: 28 },
      { code: 'ERR_INVALID_POD', line: 7, column: 37 },
    ]);
  });

  it('an item of a list, and what an alias stands for', async () => {
    const text = `apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, resources: &r {limits: {cpus: 1}}}]}}
  - {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: [{name: c, resources: *r}]}}
`;
    const { lines } = await planned(text);
    expect(lines).toEqual([
      expect.stringMatching(/^4:108 items\[0\]: spec\.containers\[0\]\.resources\.limits must/),
      expect.stringMatching(/^4:108 items\[1\]: spec\.containers\[0\]\.resources\.limits must/),
    ]);
  });

  it.each([
    [['--resource', 'gpu=1'], '--resource gpu: no device is gpu here'],
    [['--resource', 'example.com/gpu=1'], '--resource example.com/gpu: no device is example.com/gpu here'],
    [['--resource', 'memory=1Gi'], 'left out: it is the option memory'],
  ])('%j on the command line', async (flags, message) => {
    const strict = await numalign(['plan', '--cpus', '1', ...flags, ...MACHINE]);
    expect([strict.code, strict.stdout]).toEqual([1, '']);
    expect(strict.stderr).toContain(message);
    expect((await numalign(['plan', '--cpus', '1', ...flags, ...MACHINE, '--lenient'])).code).toBe(0);
  });
});

describe('a cluster takes', () => {
  it.each([
    ['a pod', pod('web.example-1', 2)],
    ['a limit without a request', podOf(`limits: {${FULL}, ephemeral-storage: 1Gi}`)],
    ['no devices at all', podOf(`limits: {${FULL}, example.com/gpu: 0}`)],
    ['labels and annotations', podOf(`limits: {${FULL}}`, 'name: a, labels: {app.kubernetes.io/name: web, empty: ""}, annotations: {Example.com/A: "{}"}')],
    ['an Init container that stays', podOf(`limits: {${FULL}}`).replace('  containers:', '  initContainers: [{name: i, restartPolicy: Always}]\n  containers:')],
    ['devices of a DRA driver', `${podOf(`limits: {${FULL}, example.com/gpu: 1}`)}status: {extendedResourceClaimStatus: {requestMappings: [{containerName: c, resourceName: example.com/gpu}]}}\n`],
  ])('%s', async (_, text) => {
    const { code, lines } = await planned(text);
    expect([code, lines]).toEqual([0, []]);
  }); // biome-ignore format: a table
});

it('claims that no file has are named as not planned', async () => {
  const text = `${podOf(`limits: {${FULL}}`)}  resourceClaims: [{name: gpu, resourceClaimName: one}]\n`;
  const { code, lines } = await planned(text);
  expect([code, lines]).toEqual([
    0,
    [expect.stringContaining('claim gpu is not planned: no file has ResourceClaim default/one')],
  ]);
});

it('--exclusive-container gives CPUs to a container of a Burstable pod, which a kubelet does not', async () => {
  const text = podOf('requests: {cpu: 2, memory: 1Gi}');
  expect((await planned(text)).stdout).toMatch(/^c +app +shared pool/m);
  expect((await planned(text, '--exclusive-container', 'c')).stdout).toMatch(/^c +app +0-1 /m);
});
