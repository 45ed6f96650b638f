// The plain manifests and those of examples/kubernetes, compared with each other and with the code.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MACHINE_STATE_DIR, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments, parse as parseYaml } from 'yaml';
import {
  NEEDED,
  NEEDED_FOR_CLAIMS,
  NEEDED_FOR_EVENTS,
  NEEDED_FOR_REFUSALS,
} from '../../lib/check/cluster-facts.js';
import { DEFAULT_PLACES } from '../../lib/check/read-facts.js';
import { createProgram } from '../../lib/cli/program.js';
import { readDocument } from '../../lib/configuration/document.js';
import { managerOptions } from '../../lib/configuration/manager-part.js';
import {
  GROUP,
  KIND,
  nodeResourceTopology,
  PLURAL,
  VERSION,
} from '../../lib/publish/node-resource-topology.js';
import { zonesOf } from '../../lib/publish/zones.js';

const CLAIMS_ROLE = parseAllDocuments(
  readFileSync(new URL('../../deploy/kustomize/claims/rights.yaml', import.meta.url), 'utf8'),
)[0]!.toJS();

const REFUSALS_ROLE = parseAllDocuments(
  readFileSync(new URL('../../deploy/refusals.yaml', import.meta.url), 'utf8'),
)[0]!.toJS();

const ROOT = new URL('../../../../', import.meta.url);
const FOLDERS = ['packages/kubernetes/deploy/kustomize/base/', 'examples/kubernetes/'];
const DOCKERFILE = readFileSync(new URL('packages/kubernetes/deploy/image/Dockerfile', ROOT), 'utf8');
const packageOf = (folder: string) =>
  JSON.parse(readFileSync(new URL(`${folder}package.json`, ROOT), 'utf8'));

interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
  [field: string]: any;
}

const files = FOLDERS.flatMap((folder) =>
  readdirSync(new URL(folder, ROOT))
    .filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
    .map((name) => new URL(folder + name, ROOT)),
);
const documents = files.flatMap((file) => parseAllDocuments(readFileSync(file, 'utf8')));
const manifests = documents.map((document) => document.toJS() as Manifest);

function find(kind: string, name: string, namespace?: string): Manifest {
  const found = manifests.find(
    (each) => each.kind === kind && each.metadata.name === name && each.metadata.namespace === namespace,
  );
  return found ?? expect.fail(`there is no ${kind} ${name} in ${namespace}`);
}

const AGENT = find('DaemonSet', 'numalign-node', 'numalign');
const POD = AGENT.spec.template.spec;
const [CONTAINER] = POD.containers;

describe('the manifests', () => {
  it('are YAML without errors or warnings, each an object with a name', () => {
    expect(documents.flatMap(({ errors, warnings }) => [...errors, ...warnings])).toEqual([]);
    for (const { apiVersion, kind, metadata } of manifests) {
      expect([typeof apiVersion, typeof kind, typeof metadata.name]).toEqual(['string', 'string', 'string']);
    }
    const names = manifests.map(({ kind, metadata: { name, namespace } }) => `${kind} ${namespace}/${name}`);
    expect(new Set(names).size).toBe(names.length);
  });

  it('bind existing roles to existing accounts', () => {
    const bindings = manifests.filter(({ kind }) => kind.endsWith('RoleBinding'));
    expect(bindings.length).toBeGreaterThan(1);
    for (const { roleRef, subjects } of bindings) {
      // Those of Kubernetes itself are in every cluster.
      const isKubernetes = roleRef.name.startsWith('system:') || roleRef.name.startsWith('extension-');
      if (!isKubernetes) find(roleRef.kind, roleRef.name);
      for (const { kind, name, namespace } of subjects) find(kind, name, namespace);
    }
  });

  it('select their own pods, and use existing accounts and ConfigMaps', () => {
    const workloads = manifests.filter(({ spec }) => spec?.template);
    expect(workloads.map(({ kind }) => kind)).toEqual(['DaemonSet', 'Deployment']);
    for (const { spec, metadata } of workloads) {
      expect(spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels);
      const pod = spec.template.spec;
      find('ServiceAccount', pod.serviceAccountName, metadata.namespace);
      const volumes: { name: string; configMap?: { name: string } }[] = pod.volumes;
      for (const { configMap } of volumes)
        if (configMap) find('ConfigMap', configMap.name, metadata.namespace);
      const mounts = pod.containers.flatMap((each: any) => each.volumeMounts.map((mount: any) => mount.name));
      expect(new Set(mounts)).toEqual(new Set(volumes.map(({ name }) => name)));
      // The file on the command line is a key of the mounted ConfigMap.
      const [container] = pod.containers;
      const words: string[] = [...(container.command ?? []), ...(container.args ?? [])];
      const file = words.flatMap(
        (word) => /^--(?:kubelet-configuration|config)=(.*)$/.exec(word)?.[1] ?? [],
      )[0]!;
      const mount = container.volumeMounts.find(({ mountPath }: any) => mountPath === dirname(file));
      const volume = volumes.find(({ name }) => name === mount.name);
      const { data } = find('ConfigMap', volume!.configMap!.name, metadata.namespace);
      expect(Object.keys(data)).toEqual([file.slice(dirname(file).length + 1)]);
    }
  });
});

describe('the agent', () => {
  it.each([
    ['publishing and Events need', find('ClusterRole', 'numalign-node'), [...NEEDED, ...NEEDED_FOR_EVENTS]],
    ['evictions need', REFUSALS_ROLE, NEEDED_FOR_REFUSALS.evict],
    // The base may read Nodes.
    ['claims need', CLAIMS_ROLE, NEEDED_FOR_CLAIMS.filter(([, group]) => group !== '')],
  ])('has exactly the rights that %s', (_, { rules }, needed) => {
    const allowed = rules.flatMap(
      ({ verbs, apiGroups: [group], resources: [resource], resourceNames = [], ...others }: any) => {
        expect(others).toEqual({});
        return verbs.map((verb: string) => [verb, group, resource, ...resourceNames]);
      },
    );
    expect(allowed.toSorted()).toEqual([...needed].toSorted());
  });

  it('sees the sockets, files and folders that it needs, at their places on the machine', () => {
    const { state, ...places } = { state: MACHINE_STATE_DIR, ...DEFAULT_PLACES };
    const paths = [state, ...Object.values(places)];
    const hosts = new Map(POD.volumes.map(({ name, hostPath }: any) => [name, hostPath?.path]));
    const mounts = CONTAINER.volumeMounts.filter(({ name }: any) => hosts.get(name) !== undefined);
    for (const { name, mountPath } of mounts) expect(mountPath).toBe(hosts.get(name));
    const isSeen = (path: string) =>
      mounts.some(({ mountPath }: any) => path === mountPath || path.startsWith(`${mountPath}/`));
    expect(paths.filter((path) => !isSeen(path))).toEqual([]);
  });

  it('starts even if the runtime has no NRI yet, so that its check can say so', () => {
    const nri = POD.volumes.find(({ hostPath }: any) => hostPath?.path === dirname(DEFAULT_PLACES.nriSocket));
    expect(nri.hostPath.type).toBe('DirectoryOrCreate');
  });

  it('is started with valid options of the command', () => {
    const run = createProgram().commands.find((each) => each.name() === 'run')!;
    const known = run.options.map(({ long }) => long);
    const given = CONTAINER.args.map((word: string) => word.split('=')[0]);
    expect(known).toEqual(expect.arrayContaining(given));
    expect(CONTAINER.command).toBeUndefined();
  });

  it('knows its node by its name in the cluster', () => {
    expect(CONTAINER.args).toContain('--node-name=$(NODE_NAME)');
    expect(CONTAINER.env).toEqual([
      { name: 'NODE_NAME', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
    ]);
  });

  it('is probed where it serves its health', () => {
    const [port] = CONTAINER.ports;
    const listen = CONTAINER.args.find((word: string) => word.startsWith('--listen='));
    expect(listen).toMatch(new RegExp(`:${port.containerPort}$`));
    const probe = (path: string) => ({ httpGet: { path, port: port.name } });
    expect(CONTAINER.readinessProbe).toMatchObject(probe('/readyz'));
    expect(CONTAINER.livenessProbe).toMatchObject(probe('/healthz'));
    const { annotations } = AGENT.spec.template.metadata;
    expect(annotations).toMatchObject({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': `${port.containerPort}`,
    });
  });

  it('is no Guaranteed pod: it takes no CPUs itself', async () => {
    const topology = await discover({ synthetic: 'numa:1(memory=1GB) core:4 pu:1' });
    using manager = await openManager({ topology });
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'agent' }, spec: POD };
    expect(manager.whyShared(pod)).toEqual([expect.stringContaining('Burstable')]);
  });

  it('is configured by a NodeConfiguration that numalign-node reads', async () => {
    const { data } = find('ConfigMap', 'numalign-node', 'numalign');
    const topology = await discover({ synthetic: 'numa:2(memory=1GB) core:4 pu:1' });
    const given = readDocument('node.yaml', data['node.yaml']);
    using manager = await openManager({ topology, ...managerOptions(given, undefined) });
    expect(manager.placement).toMatchObject({
      ...{ cpuManagerPolicy: 'static', memoryManagerPolicy: 'Static' },
      ...{ policy: 'single-numa-node', scope: 'container' },
    });
    expect(manager.settings().reservedSystemCPUs.size).toBe(1);
  });
});

/**
 * Values that a schema does not describe, or requires in vain: the API server drops or refuses
 * them.
 */
function flaws(value: unknown, schema: any, at = ''): string[] {
  if (schema['x-kubernetes-int-or-string']) return ['string', 'number'].includes(typeof value) ? [] : [at];
  if (schema.type === 'array')
    return Array.isArray(value) ? value.flatMap((each, i) => flaws(each, schema.items, `${at}[${i}]`)) : [at];
  if (schema.type === 'integer') return Number.isInteger(value) ? [] : [at];
  if (schema.type !== 'object') return typeof value === schema.type ? [] : [at];
  if (!schema.properties) return [];
  const fields = Object.entries(value as object);
  const missing = (schema.required ?? []).filter((name: string) => !fields.some(([key]) => key === name));
  return [
    ...missing.map((name: string) => `${at}.${name} is missing`),
    ...fields.flatMap(([key, each]) =>
      schema.properties[key] ? flaws(each, schema.properties[key], `${at}.${key}`) : [`${at}.${key}`],
    ),
  ];
}

describe('the definition', () => {
  const definition = find('CustomResourceDefinition', `${PLURAL}.${GROUP}`);

  it('is for the published resource', () => {
    const { group, names, scope, versions } = definition.spec;
    expect([group, names.plural, names.kind, scope]).toEqual([GROUP, PLURAL, KIND, 'Cluster']);
    expect(versions.map(({ name, served, storage }: any) => [name, served, storage])).toEqual([
      [VERSION, true, true],
    ]);
  });

  it('describes a published object completely', async () => {
    const cpus = [0, 1, 2, 3].map((cpu) => [cpu, cpu, cpu >> 1, cpu >> 1]);
    const nodes = [0, 1].map((id) => ({
      ...{ id, memory: 2 ** 32, distances: [10, 21] },
      hugepages: [{ sizeKiB: 2048, count: 4 }],
    }));
    const json: any = { columns: ['cpu', 'core', 'socket', 'numa'], cpus, nodes };
    using manager = await openManager({ topology: await discover({ json }) });
    manager.registerDevices('example.com/nic', [{ id: 'a', numaNodes: [1] }]);
    const settings = { policy: 'restricted', scope: 'container', maxNodes: 8 } as const;
    const object = nodeResourceTopology('a', settings, zonesOf(manager), 'pfp0v001ef46db3751d8e999');
    const schema = definition.spec.versions[0].schema.openAPIV3Schema;
    expect(flaws(object, schema)).toEqual([]);
    expect(flaws({ ...object, zones: [{ name: 'a', kind: 'b' }] }, schema)).toEqual([
      '.zones[0].type is missing',
      '.zones[0].kind',
    ]);
  });
});

describe('the scheduler', () => {
  it('uses the published objects, for the pods that name it', () => {
    const { data } = find('ConfigMap', 'topology-scheduler', 'kube-system');
    const { profiles } = parseYaml(data['scheduler.yaml']);
    const [{ schedulerName, plugins, pluginConfig }] = profiles;
    expect(plugins.multiPoint.enabled).toEqual([{ name: 'NodeResourceTopologyMatch' }]);
    expect(pluginConfig[0].name).toBe('NodeResourceTopologyMatch');
    expect(find('Pod', 'gateway').spec.schedulerName).toBe(schedulerName);
    const { rules } = find('ClusterRole', 'topology-scheduler');
    expect(rules).toEqual([{ apiGroups: [GROUP], resources: [PLURAL], verbs: ['get', 'list', 'watch'] }]);
  });

  it('has an example of a pod that gets its own CPUs', async () => {
    const topology = await discover({ synthetic: 'numa:2(memory=1GB) core:4 pu:1' });
    using manager = await openManager({ topology });
    expect(manager.whyShared(find('Pod', 'gateway'))).toEqual([null]);
  });
});

describe('the image', () => {
  const lines = DOCKERFILE.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const argumentsOf = (instruction: string) =>
    lines.flatMap((line) => (line.startsWith(`${instruction} `) ? [line.slice(instruction.length + 1)] : []));

  it('needs no program of the architecture that it is made for', () => {
    expect(argumentsOf('RUN')).toEqual([]);
  });

  it('runs the command of the package, with a supported Node', () => {
    const { bin, engines, version } = packageOf('packages/kubernetes/');
    const command = JSON.parse(argumentsOf('ENTRYPOINT')[0]!);
    expect(Object.keys(bin)).toEqual(command);
    const [, major] = /^BASE=node:(\d+)-/.exec(argumentsOf('ARG')[0]!)!;
    expect(engines.node).toContain(`>=${major}.`);
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is Docker's.
    expect(argumentsOf('FROM')).toEqual(['${BASE}']);
    expect(CONTAINER.image).toBe(`${command[0]}:${version}`);
    const folder = argumentsOf('COPY')[0]!.split(' ')[1]!;
    expect(argumentsOf('ENV')[0]).toContain(`PATH=${join(folder, 'node_modules/.bin')}:`);
  });
});
