// The Helm chart, rendered by scripts/chart: what its values do, and what it refuses.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
// @ts-expect-error: it has no types.
import { renderChart } from '../../../../scripts/chart/chart.mjs';
// @ts-expect-error: it has no types.
import { plainManifests } from '../../../../scripts/chart/manifests.mjs';
import { NEEDED_FOR_CLAIMS, NEEDED_FOR_REFUSALS } from '../../lib/check/cluster-facts.js';

const DEPLOY = new URL('../../deploy/', import.meta.url);
const textOf = (path: string) => readFileSync(new URL(path, DEPLOY), 'utf8');

type Manifest = any;
const render = (values: object = {}, options: object = {}): Manifest[] => renderChart({ values, ...options });
const find = (manifests: Manifest[], kind: string): Manifest => manifests.find((each) => each.kind === kind);
const podOf = (values: object = {}) => find(render(values), 'DaemonSet').spec.template.spec;
const containerOf = (values: object = {}) => podOf(values).containers[0];
const mountOf = (values: object, name: string) =>
  containerOf(values).volumeMounts.filter((mount: Manifest) => mount.name === name);

describe('the chart', () => {
  it('has the version of the package', () => {
    const { version } = JSON.parse(textOf('../package.json'));
    expect(parse(textOf('chart/Chart.yaml'))).toMatchObject({ version, appVersion: version });
  });

  it('has values that its schema describes, all of them', () => {
    const { properties } = JSON.parse(textOf('chart/values.schema.json'));
    const defaults = parse(textOf('chart/values.yaml'));
    expect(Object.keys(properties).filter((key) => key !== 'global')).toEqual(
      expect.arrayContaining(Object.keys(defaults)),
    );
    expect(Object.keys(defaults).length).toBe(Object.keys(properties).length - 1);
  });

  it.each([
    [{ hostPid: true }, 'hostPid is not known'],
    [{ image: { repository: 'a', tags: 'b' } }, 'image.tags is not known'],
    [{ nri: { index: '9' } }, 'nri.index: "9" does not match'],
    [{ configuration: { kind: 'KubeletConfiguration' } }, 'is none of NodeConfiguration'],
    [{ serve: { port: 0 } }, 'serve.port: 0 is out of range'],
    [{ cgroups: { readOnly: 'yes' } }, 'cgroups.readOnly: "yes" is not of type boolean'],
    [{ image: null }, 'image is missing'],
  ])('refuses %j', (values, flaw) => {
    expect(() => render(values)).toThrow(flaw);
  });

  it('names everything after a release that has another name', () => {
    const manifests = render({}, { release: 'blue', namespace: 'system' });
    const own = manifests.filter(({ kind }) => kind !== 'CustomResourceDefinition');
    expect(new Set(own.map(({ metadata }) => metadata.name))).toEqual(new Set(['blue-numalign-node']));
    const { spec } = find(manifests, 'DaemonSet');
    expect(spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels);
    expect(spec.selector.matchLabels['app.kubernetes.io/instance']).toBe('blue');
    expect(spec.template.spec.serviceAccountName).toBe('blue-numalign-node');
    expect(find(manifests, 'ClusterRoleBinding').subjects[0]).toMatchObject({
      ...{ name: 'blue-numalign-node', namespace: 'system' },
    });
  });

  it('renders every list and map that it passes on', () => {
    const values = {
      ...{ imagePullSecrets: [{ name: 'registry' }], podLabels: { team: 'a' }, nodeSelector: { b: 'c' } },
      ...{
        podAnnotations: { d: 'e' },
        tolerations: [],
        affinity: { nodeAffinity: {} },
        priorityClassName: '',
      },
      ...{ extraArgs: ['--page'], extraEnv: [{ name: 'F', value: 'g' }], resources: {} },
      serviceAccount: { create: false, name: 'other' },
    };
    const manifests = render(values);
    const { metadata, spec } = find(manifests, 'DaemonSet').spec.template;
    expect(metadata.labels.team).toBe('a');
    expect(metadata.annotations.d).toBe('e');
    expect(spec).toMatchObject({
      imagePullSecrets: [{ name: 'registry' }],
      nodeSelector: { b: 'c', 'kubernetes.io/os': 'linux' },
      affinity: { nodeAffinity: {} },
      serviceAccountName: 'other',
    });
    expect([spec.tolerations, spec.priorityClassName]).toEqual([undefined, undefined]);
    const [{ args, env, resources }] = spec.containers;
    expect(args.at(-1)).toBe('--page');
    expect(env.at(-1)).toEqual({ name: 'F', value: 'g' });
    expect(resources.requests).toEqual({ cpu: '50m', memory: '128Mi' });
    expect(find(manifests, 'ServiceAccount')).toBeUndefined();
  });
});

describe('the agent of the chart', () => {
  it('has no privilege of Linux', () => {
    const { hostPID, hostNetwork, hostIPC, securityContext } = podOf();
    expect([hostPID, hostNetwork, hostIPC]).toEqual([undefined, undefined, undefined]);
    expect(securityContext.seccompProfile).toEqual({ type: 'RuntimeDefault' });
    expect(containerOf().securityContext).toEqual({
      ...{ runAsUser: 0, runAsGroup: 0, privileged: false, allowPrivilegeEscalation: false },
      ...{ readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    });
  });

  it('writes only its state, and cgroups unless told otherwise', () => {
    const writable = (values: object) =>
      containerOf(values).volumeMounts.flatMap(({ mountPath, readOnly }: Manifest) =>
        readOnly === true ? [] : [mountPath],
      );
    expect(writable({})).toEqual(['/run/numalign', '/sys/fs/cgroup']);
    expect(writable({ cgroups: { readOnly: true } })).toEqual(['/run/numalign']);
    expect(writable({ devicePlugin: { enabled: true } })).toContain('/var/lib/kubelet/device-plugins');
  });

  it('may change the machine for quiet containers only on request, with one capability', () => {
    const quiet = { quiet: { enabled: true } };
    expect(containerOf(quiet).securityContext).toEqual({
      ...{ runAsUser: 0, runAsGroup: 0, privileged: true, readOnlyRootFilesystem: true },
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] },
    });
    const { volumes, hostPID, hostNetwork } = podOf(quiet);
    const more = volumes.slice(podOf().volumes.length);
    expect(more.map(({ hostPath }: Manifest) => hostPath.path)).toEqual(['/sys', '/run/irqbalance']);
    expect([hostPID, hostNetwork]).toEqual([true, true]);
  });

  it('keeps no mount of other pods, and sees none of their files', () => {
    for (const name of ['runtime', 'kubelet'])
      expect(mountOf({}, name)[0]).toMatchObject({ readOnly: true, mountPropagation: 'HostToContainer' });
    expect(mountOf({}, 'hidden').map(({ mountPath }: Manifest) => mountPath)).toEqual([
      '/run/containerd/io.containerd.runtime.v2.task',
      '/var/lib/kubelet/pods',
      '/var/lib/kubelet/plugins',
    ]);
  });

  it('works with another runtime, and another folder of the kubelet', () => {
    const values = {
      runtime: { folder: '/run/crio', bundles: '', configuration: '' },
      kubelet: { folder: '/var/snap/kubelet' },
    };
    const paths = podOf(values).volumes.flatMap(({ hostPath }: Manifest) => hostPath?.path ?? []);
    expect(paths).toEqual([
      '/run/numalign',
      '/var/run/nri',
      '/sys/fs/cgroup',
      '/run/crio',
      '/var/snap/kubelet',
    ]);
    expect(mountOf(values, 'hidden')).toHaveLength(2);
    expect(containerOf(values).args).toContain('--kubelet-folder=/var/snap/kubelet');
  });

  it('starts where NRI requires numalign of all containers', () => {
    const { annotations } = find(render(), 'DaemonSet').spec.template.metadata;
    expect(annotations['tolerate-missing-nri-plugins.noderesource.dev']).toBe('true');
    const others = find(render({ nri: { tolerateMissingPluginsAnnotation: '' } }), 'DaemonSet');
    expect(Object.keys(others.spec.template.metadata.annotations)).toEqual([
      'prometheus.io/scrape',
      'prometheus.io/port',
    ]);
  });

  it('has no rights for what it does not do', () => {
    const rules = (values: object) => find(render(values), 'ClusterRole').rules;
    const groups = (values: object) => rules(values).map(({ resources }: Manifest) => resources[0]);
    expect(groups({ publish: { enabled: false } })).toEqual(['events']);
    expect(groups({ events: { enabled: false } })).not.toContain('events');
    expect(rules({ publish: { enabled: false }, events: { enabled: false } })).toEqual([]);
  });

  it.each([
    ['condition', NEEDED_FOR_REFUSALS.condition],
    ['evict', NEEDED_FOR_REFUSALS.evict],
  ])('has the rights for what its configuration says of refusals: %s', (onRefusal, needed) => {
    const without = { publish: { enabled: false }, events: { enabled: false } };
    const { rules } = find(render({ ...without, configuration: { onRefusal } }), 'ClusterRole');
    const rights = rules.flatMap(({ verbs, apiGroups: [group], resources: [resource] }: Manifest) =>
      verbs.map((verb: string) => [verb, group, resource]),
    );
    expect(rights.toSorted()).toEqual([...needed].toSorted());
  });

  it('may do for claims what its check asks for, has what the kubelet calls, and the classes', () => {
    const values = { publish: { enabled: false }, events: { enabled: false }, dra: { enabled: true } };
    const manifests = render(values);
    const rights = find(manifests, 'ClusterRole').rules.flatMap(
      ({ verbs, apiGroups: [group], resources: [resource], resourceNames = [] }: Manifest) =>
        verbs.map((verb: string) => [verb, group, resource, ...resourceNames]),
    );
    expect(rights.toSorted()).toEqual([...NEEDED_FOR_CLAIMS].toSorted());
    const { args, env } = containerOf(values);
    expect(args).toEqual(expect.arrayContaining(['--dra', '--dra-devices=node', '--node-name=$(NODE_NAME)']));
    expect(env.at(-1).valueFrom.fieldRef.fieldPath).toBe('metadata.uid');
    for (const path of ['plugins/numalign.io', 'plugins_registry'])
      expect(containerOf(values).volumeMounts).toContainEqual({
        name: path === 'plugins_registry' ? 'plugins-registry' : 'dra',
        mountPath: `/var/lib/kubelet/${path}`,
      });
    const classes = manifests.filter(({ kind }) => kind === 'DeviceClass');
    const spoken = classes.map(({ metadata: { name }, spec }) => ({ metadata: { name }, spec }));
    const plain = parseAllDocuments(textOf('kustomize/claims/deviceclasses.yaml')).map((each) => each.toJS());
    expect(spoken).toEqual(plain.map(({ metadata, spec }: Manifest) => ({ metadata, spec })));
    expect(render({ dra: { enabled: true, classes: false } }).map(({ kind }) => kind)).not.toContain(
      'DeviceClass',
    );
  });

  it('may read pods that it places as a whole', () => {
    const values = { publish: { enabled: false }, events: { enabled: false } };
    const { rules } = find(render({ ...values, configuration: { wholePods: true } }), 'ClusterRole');
    expect(rules).toEqual([{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]);
  });

  it('is seen by the Prometheus Operator on request', () => {
    expect(find(render(), 'PodMonitor')).toBeUndefined();
    const { spec } = find(render({ serve: { podMonitor: { enabled: true } } }), 'PodMonitor');
    expect(spec.podMetricsEndpoints).toEqual([{ port: 'metrics', interval: '30s' }]);
    const { serve, ...pod } = { serve: { enabled: false }, ...containerOf({ serve: { enabled: false } }) };
    expect([pod.ports, pod.readinessProbe, pod.livenessProbe]).toEqual([undefined, undefined, undefined]);
  });
});

/** A JSON patch (RFC 6902) of objects and lists. */
function patched(target: any, patch: readonly { op: string; path: string; value?: unknown }[]): any {
  const result = structuredClone(target);
  for (const { op, path, value } of patch) {
    const keys = path.split('/').slice(1);
    const last = keys.pop()!;
    const holder = keys.reduce((object, key) => object[key], result);
    if (op === 'test') expect(holder[last]).toEqual(value);
    else if (op === 'remove') delete holder[last];
    else if (last === '-') holder.push(value);
    else holder[last] = value;
  }
  return result;
}

const overlay = (name: string) => {
  const { resources, patches } = parse(textOf(`kustomize/${name}/kustomization.yaml`));
  expect(resources).toEqual(['../base']);
  return patches.flatMap(({ patch }: Manifest) => parse(patch));
};

describe('the plain manifests', () => {
  it('are what the chart renders', () => {
    for (const [name, text] of Object.entries(plainManifests()))
      expect(textOf(`kustomize/base/${name}`), 'node scripts/chart/manifests.mjs').toBe(text);
  });

  it('are all in the base of Kustomize, which others extend', () => {
    const base = new URL('kustomize/base/', DEPLOY);
    const files = readdirSync(base).filter((name) => name !== 'kustomization.yaml');
    expect(parse(textOf('kustomize/base/kustomization.yaml')).resources.toSorted()).toEqual(files.toSorted());
  });

  it.each([
    ['host-processes', { hostPID: true }],
    ['quiet', { quiet: { enabled: true } }],
  ])('have the overlay %s, which is as the chart with %j', (name, values) => {
    const [base, other] = [{}, values].map((each) => find(render(each), 'DaemonSet'));
    expect(patched(base, overlay(name))).toEqual(other);
    expect(render(values).length).toBe(render().length);
  });

  it('grant claims as an overlay, as the chart does', () => {
    const claims = parse(textOf('kustomize/claims/daemonset.yaml'));
    const sorted = (daemonSet: any) => {
      const { volumes, containers } = daemonSet.spec.template.spec;
      volumes.sort((one: any, other: any) => one.name.localeCompare(other.name));
      containers[0].args.sort();
      return daemonSet;
    };
    const ofChart = find(render({ dra: { enabled: true } }), 'DaemonSet');
    expect(sorted(patched(find(render(), 'DaemonSet'), claims))).toEqual(sorted(ofChart));
  });
});
