// needs: nothing
// Manifests of workloads and lists -> the pods that they make.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NumalignError } from '../../lib/base/errors.js';
import { nameUid } from '../../lib/base/text/name-uid.js';
import { parsePod } from '../../lib/input/pods/pod-request.js';
import { contentsOf, podsOf, workloadsOf } from '../../lib/input/pods/workload.js';
import { thrownBy } from '../support/error-of.js';

const TEMPLATE = {
  metadata: {
    name: 'ignored',
    namespace: 'ignored',
    uid: 'ignored',
    labels: { app: 'web' },
    annotations: { a: 'b' },
  },
  spec: { containers: [{ name: 'main', image: 'web:1', resources: { limits: { cpu: 2, memory: '1Gi' } } }] },
};
const API_VERSIONS: Record<string, string> = {
  Deployment: 'apps/v1',
  ReplicaSet: 'apps/v1',
  StatefulSet: 'apps/v1',
  DaemonSet: 'apps/v1',
  ReplicationController: 'v1',
  Job: 'batch/v1',
};

/** `spec` beside its template. */
const workload = (kind: string, spec: object = {}, metadata: object = { name: 'web' }) => ({
  ...{ apiVersion: API_VERSIONS[kind], kind, metadata },
  spec: { ...spec, template: TEMPLATE },
});
const cronJob = (spec: object) => ({
  ...{ apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'web' } },
  spec: { schedule: '@daily', jobTemplate: { spec: { ...spec, template: TEMPLATE } } },
});
const names = (document: unknown) => podsOf(document).map((pod) => parsePod(pod).name);
const refused = (document: unknown) => thrownBy(() => podsOf(document));
const fieldOf = (document: unknown) => refused(document)?.details.field;

describe('podsOf', () => {
  it.each([
    ['Deployment', { replicas: 3 }, ['web-0', 'web-1', 'web-2']],
    ['Deployment', {}, ['web-0']],
    ['Deployment', { replicas: null }, ['web-0']],
    ['Deployment', { replicas: 0 }, []],
    ['ReplicaSet', { replicas: 2 }, ['web-0', 'web-1']],
    ['ReplicationController', { replicas: 2 }, ['web-0', 'web-1']],
    ['StatefulSet', { replicas: 2 }, ['web-0', 'web-1']],
    ['StatefulSet', { replicas: 2, ordinals: { start: 5 } }, ['web-5', 'web-6']],
    ['Deployment', { ordinals: { start: 5 } }, ['web-0']],
    ['DaemonSet', { replicas: 9 }, ['web-0']],
    ['Job', {}, ['web-0']],
    ['Job', { parallelism: 3 }, ['web-0', 'web-1', 'web-2']],
    ['Job', { parallelism: 3, completions: 2 }, ['web-0', 'web-1']],
    ['Job', { parallelism: 2, completions: 9 }, ['web-0', 'web-1']],
    ['Job', { completions: 9 }, ['web-0']],
  ])('has the pods of a %s of %j', (kind, spec, expected) => {
    expect(names(workload(kind, spec))).toEqual(expected);
  }); // biome-ignore format: a table

  it('has the pods of one run of a CronJob', () => {
    expect(names(cronJob({ parallelism: 2 }))).toEqual(['web-0', 'web-1']);
  });

  it('has one pod of a PodTemplate', () => {
    const document = { apiVersion: 'v1', kind: 'PodTemplate', metadata: { name: 'web' }, template: TEMPLATE };
    expect(names(document)).toEqual(['web-0']);
  });

  it('gives each pod the spec and labels of the template, the namespace and a uid that follows from the names', () => {
    const [pod] = podsOf(workload('Deployment', {}, { name: 'web', namespace: 'prod' }));
    expect(pod).toEqual({
      ...{ apiVersion: 'v1', kind: 'Pod' },
      metadata: {
        ...{ labels: { app: 'web' }, annotations: { a: 'b' } },
        ...{ name: 'web-0', namespace: 'prod', uid: nameUid('prod', 'web-0') },
      },
      spec: TEMPLATE.spec,
    });
  });

  it('leaves pods of a generated name without name and uid', () => {
    const [pod] = podsOf(workload('Job', {}, { generateName: 'web-' })).map(parsePod);
    expect([pod!.name, pod!.uid]).toEqual([undefined, undefined]);
    const own = { kind: 'Pod', metadata: { generateName: 'web-' }, spec: TEMPLATE.spec };
    expect(podsOf(own)).toEqual([own]);
  });

  it('has a Pod, in plain words too, with the uid that it has or that follows from its names', () => {
    const uids = (document: unknown) => podsOf(document).map((pod) => parsePod(pod).uid);
    const manifest = (metadata: object) => ({ kind: 'Pod', metadata, spec: TEMPLATE.spec, status: {} });
    expect(uids(manifest({ name: 'a', uid: 'u-1' }))).toEqual(['u-1']);
    expect(uids(manifest({ name: 'a' }))).toEqual([nameUid('default', 'a')]);
    expect(uids(manifest({ name: 'a', namespace: 'prod', uid: null }))).toEqual([nameUid('prod', 'a')]);
    expect(uids({ name: 'a', containers: [{ name: 'main' }] })).toEqual([nameUid('default', 'a')]);
    expect(podsOf(manifest({ name: 'a' }))).toMatchObject([{ status: {} }]);
  });

  it('has all of a List, and of a list of one kind whose items do not say it, as the API server answers', () => {
    const [deployment, job] = [workload('Deployment', { replicas: 2 }), workload('Job', {}, { name: 'job' })];
    const list = { apiVersion: 'v1', kind: 'List', items: [deployment, job] };
    expect(podsOf(list)).toEqual([...podsOf(deployment), ...podsOf(job)]);
    const { kind, apiVersion, ...item } = deployment;
    expect(podsOf({ apiVersion, kind: 'DeploymentList', items: [item] })).toEqual(podsOf(deployment));
    const pod = { metadata: { name: 'a' }, spec: TEMPLATE.spec };
    expect(names({ apiVersion: 'v1', kind: 'PodList', items: [pod, pod] })).toEqual(['a', 'a']);
  });

  it('has no pods of other kinds in a list', () => {
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { ports: [] } };
    const sealed = { kind: 'SealedSecret', spec: { template: { type: 'Opaque', spec: {} } } };
    const deployment = workload('Deployment', { replicas: 2 });
    expect(podsOf({ kind: 'List', items: [service, deployment, sealed] })).toEqual(podsOf(deployment));
  });

  it('treats a list like its items, one after the other', () => {
    const kinds = fc.constantFrom(...Object.keys(API_VERSIONS));
    const counts = fc.record({ replicas: fc.nat(4), parallelism: fc.nat(4) }, { requiredKeys: [] });
    const documents = fc.array(
      fc
        .tuple(kinds, counts, fc.stringMatching(/^[a-z]{1,9}$/))
        .map(([kind, spec, name]) => workload(kind, spec, { name })),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(documents, (items) => {
        expect(podsOf({ kind: 'List', items })).toEqual(items.flatMap(podsOf));
      }),
    );
  });

  it('makes copies of a pod, each with a name and a uid of its own', () => {
    const [pod] = workloadsOf({ kind: 'Pod', metadata: { name: 'a', uid: 'u-1' }, spec: TEMPLATE.spec });
    const copies = pod!.pods(2).map(parsePod);
    expect(copies.map(({ name, uid }) => [name, uid])).toEqual([
      ['a-0', nameUid('default', 'a-0')],
      ['a-1', nameUid('default', 'a-1')],
    ]);
  });

  it('makes copies of a pod without a name, none of which has its uid', () => {
    const [pod] = workloadsOf({ kind: 'Pod', metadata: { uid: 'u-1' }, spec: TEMPLATE.spec });
    const copies = pod!.pods(2).map(parsePod);
    expect(copies.map(({ name, uid }) => [name, uid])).toEqual(Array(2).fill([undefined, undefined]));
  });
});

describe('contentsOf', () => {
  it('reports kind and name of documents without pods', () => {
    const others = (document: unknown) =>
      contentsOf(document).others.map(({ kind, name, field }) => [kind, name, field]);
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' } };
    expect(contentsOf(service).workloads).toEqual([]);
    expect(others(service)).toEqual([['Service', 'web', 'kind']]);
    expect(others({ kind: 'ConfigMap', metadata: { name: 7 } })).toEqual([['ConfigMap', undefined, 'kind']]);
    expect(others({ kind: 'List', items: [workload('Job'), service] })).toEqual([
      ['Service', 'web', 'items[1].kind'],
    ]);
  });

  it.each([
    [{ ...workload('Deployment'), kind: 'Deploymnt' }, 'kind'],
    [{ apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout', spec: { template: TEMPLATE } }, 'kind'],
    [{ kind: 'pod', spec: TEMPLATE.spec }, 'kind'],
    [{ ...cronJob({}), kind: 'Cronjob' }, 'kind'],
    [{ kind: 'List', items: [workload('Job'), { ...workload('Job'), kind: 'job' }] }, 'items[1].kind'],
    [{ kind: 'List', items: [workload('Job'), { kind: 'PodList', items: [] }] }, 'items[1].kind'],
    [{ kind: 7 }, 'kind'],
    [{ kind: '' }, 'kind'],
    [{ kind: 'List', items: [{ metadata: { name: 'web' } }] }, 'items[0].kind'],
  ])('refuses %j, which may have pods, and names %s', (document, field) => {
    const error = thrownBy(() => contentsOf(document));
    expect([error?.code, error?.details.field]).toEqual(['ERR_INVALID_POD', field]);
  }); // biome-ignore format: a table
});

describe('podsOf refuses', () => {
  it.each([
    [null, 'the manifest'],
    ['kind: Pod', 'the manifest'],
    [{ kind: 'Service' }, 'kind'],
    [{ kind: 7 }, 'kind'],
    [{ kind: 'ServiceList', items: [] }, 'kind'],
    [{ kind: 'ListList', items: [] }, 'kind'],
    [{ ...workload('Deployment'), apiVersion: 'v1' }, 'apiVersion'],
    [{ ...workload('Job'), apiVersion: 'batch/v1beta1' }, 'apiVersion'],
    [{ kind: 'List', apiVersion: 'v2', items: [workload('Job')] }, 'apiVersion'],
    [{ kind: 'Deployment' }, 'spec'],
    [{ kind: 'Deployment', spec: {} }, 'spec.template'],
    [{ kind: 'Deployment', spec: { template: { metadata: {} } } }, 'spec.template.spec'],
    [{ kind: 'CronJob', spec: {} }, 'spec.jobTemplate'],
    [{ kind: 'CronJob', spec: { jobTemplate: { spec: {} } } }, 'spec.jobTemplate.spec.template'],
    [{ kind: 'PodTemplate' }, 'template'],
    [workload('Deployment', { replicas: -1 }), 'spec.replicas'],
    [workload('Deployment', { replicas: '3' }), 'spec.replicas'],
    [workload('Deployment', { replicas: 1.5 }), 'spec.replicas'],
    [workload('Deployment', { replicas: 1001 }), 'spec.replicas'],
    [workload('Job', { parallelism: 2, completions: -1 }), 'spec.completions'],
    [cronJob({ parallelism: 'two' }), 'spec.jobTemplate.spec.parallelism'],
    [workload('StatefulSet', { ordinals: { start: -1 } }), 'spec.ordinals.start'],
    [workload('Deployment', {}, { name: '\n' }), 'metadata.name'],
    [workload('Deployment', {}, { name: 'a', namespace: 7 }), 'metadata.namespace'],
    [{ kind: 'List', items: [] }, 'items'],
    [{ kind: 'List' }, 'items'],
    [{ kind: 'List', items: [workload('Job'), 3] }, 'items[1]'],
    [{ kind: 'List', items: [workload('Job'), { spec: {} }] }, 'items[1].kind'],
    [{ kind: 'List', items: [{ kind: 'List', items: [] }] }, 'items[0].kind'],
    [{ kind: 'List', items: [{ kind: 'Deployment', spec: { template: {} } }] }, 'items[0].spec.template.spec'],
    [{ kind: 'List', items: [{ kind: 'Service' }, { kind: 'ConfigMap' }] }, 'items[0].kind'],
    [{ kind: 'PodList', items: [workload('Job')] }, 'items[0].kind'],
    [{ kind: 'List', items: Array(11).fill(workload('Job', { parallelism: 1000 })) }, 'the number of pods'],
  ])('%j, and names %s', (document, field) => {
    expect(fieldOf(document)).toBe(field);
    expect(refused(document)?.code).toBe('ERR_INVALID_POD');
  }); // biome-ignore format: a table

  it('any value with a documented error, or accepts it', () => {
    const kind = fc.constantFrom(
      ...Object.keys(API_VERSIONS),
      'Pod',
      'List',
      'CronJob',
      'PodList',
      'PodTemplate',
    );
    const depth = (maxDepth: number) => fc.jsonValue({ maxDepth }) as fc.Arbitrary<unknown>;
    const holder = fc.record(
      {
        template: fc.oneof(fc.constant(TEMPLATE), depth(2)),
        replicas: depth(0),
        parallelism: depth(0),
        completions: depth(0),
        ordinals: depth(1),
      },
      { requiredKeys: [] },
    );
    const spec = fc.oneof(holder, fc.record({ jobTemplate: fc.record({ spec: holder }) }), depth(2));
    const document = fc.record(
      {
        kind: fc.oneof(kind, depth(1)),
        apiVersion: depth(0),
        metadata: depth(2),
        spec,
        items: fc.array(fc.oneof(depth(2), fc.record({ kind, spec }))),
        template: depth(2),
      },
      { requiredKeys: [] },
    );
    let answers = 0;
    fc.assert(
      fc.property(fc.oneof(document, fc.anything()), (value) => {
        const error = thrownBy(() => (answers += podsOf(value).length));
        expect(error === undefined || error instanceof NumalignError).toBe(true);
      }),
      { numRuns: 2000 },
    );
    expect(answers).toBeGreaterThan(0);
  });
});
