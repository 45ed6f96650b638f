// needs: folders
// numalign plan of ResourceClaims, with the pods that use them.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { numalign } from './numalign.js';
import { newFile } from './pods.js';

// 16 CPUs, 8 a node.
const MACHINE = ['--synthetic', 'package:2 [numa(memory=64GiB)] core:4 pu:2'];
const example = (name: string) =>
  readFileSync(new URL(`../../kubernetes/deploy/claims/${name}`, import.meta.url), 'utf8');
const plan = (text: string, ...args: string[]) =>
  numalign(['plan', '-f', newFile(text), ...MACHINE, ...args]);

const web = (replicas: number, resources: string) => `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: ${replicas}
  template:
    spec:
      resourceClaims: [{name: own, resourceClaimTemplateName: four-cpus}]
      containers:
        - {name: main, resources: {claims: [{name: own}]${resources}}}
`;

describe('numalign plan of claims', () => {
  it('plans the claim of a template for each pod, until no device has room', async () => {
    const template = example('pod.yaml').split('---')[0]!;
    const { code, stdout, stderr } = await plan(`${template}---${web(5, '')}`, '--output', 'json');
    const { claims, pods } = JSON.parse(stdout);
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' });
    expect(claims.map(({ name, cpus }: any) => `${name}: ${cpus}`)).toEqual([
      'claim own of pod web-0: cpus of node-0: 2-5',
      'claim own of pod web-1: cpus of node-1: 8-11',
      'claim own of pod web-2: cpus of node-1: 12-15',
    ]);
    expect(claims[0].memory).toEqual([{ nodes: [0], type: 'memory', bytes: 2 ** 32 }]);
    expect(pods.map(({ admitted }: any) => admitted)).toEqual([true, true, true, false, false]);
    expect(pods[3].explanation.text).toBe(
      'claim own: request cpus lacks 1 of its devices: node-0: cpu 4 is more than 3, node-1: cpu 4 is more than 0',
    );
  });

  it('gives a container its CPUs once: from its claim, and says so', async () => {
    const template = example('pod.yaml').split('---')[0]!;
    const { code, stdout, stderr } = await plan(`${template}---${web(1, ', limits: {cpu: 4, memory: 1Gi}')}`);
    expect(code).toBe(0);
    expect(stderr).toContain('container main has its CPUs from claim own, and not 4 of its own besides');
    expect(stdout).toContain('no exclusive CPUs: container main: it has those of claim own');
    expect(stdout).toMatch(/claim own of pod web-0: cpus of node-0\n.*\nown +app +2-5/);
  });

  it.each([
    ['pod.yaml', [], 'cpus of node-0', []],
    ['cores.yaml', ['--dra-devices', 'core'], 'cores of core-2, core-4', []],
    [
      'gpu.yaml',
      [],
      // Of node 0, one CPU stays for everything else.
      'cpus of node-1',
      ['gpu.nvidia.com, a class of other devices', 'matchAttribute resource.kubernetes.io/numaNode with gpu'],
    ],
  ])('plans the example %s', async (name, args, devices, notPlanned) => {
    const { code, stdout, stderr } = await plan(example(name), ...args);
    expect([code, stdout.includes(devices)]).toEqual([0, true]);
    for (const what of notPlanned) expect(stderr).toContain(what);
    expect(stderr === '').toBe(notPlanned.length === 0);
  });

  it('plans the example sriov.yaml on a machine with hugepages', async () => {
    const columns = ['cpu', 'core', 'socket', 'numa'];
    const cpus = Array.from({ length: 32 }, (_, cpu) => [cpu, cpu - (cpu % 2), cpu >> 4, cpu >> 4]);
    const hugepages = [{ sizeKiB: 2 ** 20, count: 8 }];
    const nodes = [0, 1].map((id) => ({ id, memory: 64 * 2 ** 30, hugepages }));
    const machine = newFile(JSON.stringify({ columns, cpus, nodes }));
    const { code, stdout, stderr } = await numalign([
      ...['plan', '-f', newFile(example('sriov.yaml')), '--json', machine, '--output', 'json'],
    ]);
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('sriovnetwork.k8snetworkplumbingwg.io, a class of other devices'),
    ]);
    const [{ name, memory }] = JSON.parse(stdout).claims;
    expect(name).toBe('claim own of pod router: cpus of node-0');
    expect(memory).toContainEqual({ nodes: [0], type: 'hugepages-1Gi', bytes: 4 * 2 ** 30 });
  });

  it('plans parameters as a node grants them, and refuses those that a node would', async () => {
    const [template] = example('pod.yaml').split('---');
    const with_ = (parameters: string, cpu: string) =>
      `${template!.trimEnd().replace("cpu: '4'", `cpu: '${cpu}'`)}
      config:
        - opaque:
            driver: numalign.io
            parameters: { apiVersion: numalign.io/v1alpha1, kind: ClaimParameters, ${parameters} }
---${web(1, '')}`;
    const { code, stdout } = await plan(with_('mixed: true', '2500m'), '--output', 'json');
    expect(code).toBe(0);
    // Of the three CPUs that the scheduler counts, one stays in the shared pool.
    expect(JSON.parse(stdout).claims[0].cpus).toBe('2-3');
    const wrong = await plan(with_('movable: true, quite: { interrupts: true }', '4'));
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toMatch(/quite.*did you mean "?quiet/);
  });

  it('has one pod for a claim, and names a claim that no file has', async () => {
    const [claim, pod] = example('cores.yaml').split('---');
    const other = pod!.replace('name: two-cores\nspec', 'name: other\nspec');
    const { code, stdout } = await plan([claim, pod, other].join('---'), '--dra-devices', 'core');
    expect(code).toBe(1);
    expect(stdout).toContain('ResourceClaim two-cores is for pod two-cores: its CPUs are for one pod');
    const { stderr } = await plan(pod!);
    expect(stderr).toContain('claim own is not planned: no file has ResourceClaim default/two-cores');
  });

  it('refuses a selector that is no CEL, with its place', async () => {
    const wrong = example('cores.yaml').replace('== "performance"', '= "performance"');
    const { code, stderr } = await plan(wrong);
    expect(code).toBe(1);
    expect(stderr).toMatch(/exactly\.selectors\[0\]\.cel\.expression: character \d+ of .*"=" is no part/);
  });
});
