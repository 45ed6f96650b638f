// Workloads: the Kubernetes objects that stand for pods, and their pods. Pure.
import { isName, NAME } from '../../base/check-options.js';
import { type Fields, isObject } from '../../base/shapes.js';
import { nameUid } from '../../base/text/name-uid.js';
import { DEFAULT_NAMESPACE } from './pod-request.js';
import { hasManifestKeys, type PlainPod, type PodSpec } from './pod-spec.js';
import { fail, podShape } from './resource-amounts.js';

/** The greatest number of pods of one workload: more than a node runs. */
export const MAX_REPLICAS = 1000;
// The greatest number of pods of all workloads of a manifest.
const MAX_PODS = 10_000;

/** A Pod, or an object with a pod template. */
export interface Workload {
  /** Such as `Deployment`. */
  readonly kind: string;
  /** That of its metadata. */
  readonly name: string | undefined;
  /** The number of its pods on one machine: a DaemonSet has one. */
  readonly replicas: number;
  /** The path of its pod or template in the document; empty: the document itself. */
  readonly path: string;
  /** Its pods for `Manager.admit`: `count` of them, by default `replicas`. */
  readonly pods: (count?: number) => PodSpec[];
}

interface Kind {
  readonly apiVersion: string;
  /** The path of the object with the template. */
  readonly path: readonly string[];
  readonly replicas: (spec: Fields, field: string) => number;
}

const replicasOf = ({ replicas }: Fields, field: string) => countIn(replicas, `${field}.replicas`);
const one = () => 1;

// The number of pods that run at one time.
function parallelPods({ parallelism, completions }: Fields, field: string): number {
  const atOnce = countIn(parallelism, `${field}.parallelism`);
  if (completions === undefined || completions === null) return atOnce;
  return Math.min(atOnce, podShape.whole(completions, `${field}.completions`));
}

function countIn(value: unknown, field: string): number {
  return value === undefined || value === null ? 1 : podShape.whole(value, field, MAX_REPLICAS);
}

const KINDS: ReadonlyMap<string, Kind> = new Map([
  ['Deployment', { apiVersion: 'apps/v1', path: ['spec'], replicas: replicasOf }],
  ['ReplicaSet', { apiVersion: 'apps/v1', path: ['spec'], replicas: replicasOf }],
  ['StatefulSet', { apiVersion: 'apps/v1', path: ['spec'], replicas: replicasOf }],
  ['DaemonSet', { apiVersion: 'apps/v1', path: ['spec'], replicas: one }],
  ['ReplicationController', { apiVersion: 'v1', path: ['spec'], replicas: replicasOf }],
  ['Job', { apiVersion: 'batch/v1', path: ['spec'], replicas: parallelPods }],
  ['CronJob', { apiVersion: 'batch/v1', path: ['spec', 'jobTemplate', 'spec'], replicas: parallelPods }],
  ['PodTemplate', { apiVersion: 'v1', path: [], replicas: one }],
]);

const VALID_KINDS = `one of ${['Pod', ...KINDS.keys()].join(', ')}, or a List of them`;

/** A manifest of another kind, such as a Service. */
export interface OtherManifest {
  /** Such as `Service`. */
  readonly kind: string;
  /** That of its metadata. */
  readonly name: string | undefined;
  /** The path of its kind in the document. */
  readonly field: string;
}

/** The content of a document. */
export interface ManifestContents {
  /** Objects with pods. */
  readonly workloads: readonly Workload[];
  /** Objects without pods. */
  readonly others: readonly OtherManifest[];
}

/**
 * The workloads of a manifest or of all items of a List, and the objects without pods.
 * @throws ERR_INVALID_POD, which names the field; also for an unknown kind that seems to have pods
 */
export function contentsOf(document: unknown): ManifestContents {
  const fields = podShape.object(document, 'the manifest');
  const kinds = itemKinds(fields.kind);
  const entries = kinds === undefined ? [entryOf(fields, '')] : entriesOf(fields, kinds);
  const workloads = entries.filter(isWorkload);
  checkPodCount(workloads);
  return { workloads, others: entries.filter((entry): entry is OtherManifest => !isWorkload(entry)) };
}

/**
 * The workloads of a manifest, which must have some.
 * @throws ERR_INVALID_POD, which names the field
 */
export function workloadsOf(document: unknown): readonly Workload[] {
  const { workloads, others } = contentsOf(document);
  const [other] = others;
  if (workloads.length === 0 && other) fail(other.field, other.kind, VALID_KINDS);
  return workloads;
}

/**
 * Returns the pods of a Kubernetes manifest for {@link Manager.admit}. The manifest is a Pod; a
 * Deployment, ReplicaSet, StatefulSet or ReplicationController (`replicas` pods); a DaemonSet or
 * PodTemplate (one pod); a Job or CronJob (as many pods as run at one time); or a List, in which
 * other kinds are ignored. The pods of a workload have its name and a number: `web-0`. A pod with a
 * name and no uid gets a uid that follows from its namespace and name. Amounts are not checked.
 * @throws ERR_INVALID_POD, which names the field: another kind, a wrong `apiVersion`, a missing
 *   template, no pods or more than 1,000 (10,000 in all), an empty List or one without pods, an
 *   unknown kind with containers in a List
 */
export function podsOf(manifest: unknown): PodSpec[] {
  return workloadsOf(manifest).flatMap(({ pods }) => pods());
}

/** The pod with this uid. */
export function withUid(pod: PodSpec, uid: string): PodSpec {
  const isManifest = hasManifestKeys(pod);
  const metadata = { ...('metadata' in pod && pod.metadata), uid };
  return isManifest ? { ...pod, metadata } : { ...(pod as PlainPod), uid };
}

/** Refuses more pods than a machine can have. @throws ERR_INVALID_POD */
export function checkPodCount(workloads: readonly Pick<Workload, 'replicas'>[]): void {
  const count = workloads.reduce((sum, { replicas }) => sum + replicas, 0);
  if (count > MAX_PODS) fail('the number of pods', count, `at most ${MAX_PODS}`);
}

// The kind of the items of a List, '' for any; undefined if the kind is not a List of pods.
function itemKinds(kind: unknown): string | undefined {
  if (typeof kind !== 'string' || !kind.endsWith('List')) return undefined;
  const ofItems = kind.slice(0, -'List'.length);
  return ['', 'Pod'].includes(ofItems) || KINDS.has(ofItems) ? ofItems : undefined;
}

function entriesOf(list: Fields, kindOfItems: string): Entry[] {
  checkVersion(list, KINDS.get(kindOfItems)?.apiVersion ?? 'v1', '');
  const items = podShape.listOf(list.items, 'items', podShape.object);
  if (items.length === 0) fail('items', list.items, 'a list of at least one');
  return items.map((item, i) => {
    const at = `items[${i}].`;
    if (kindOfItems === '') return entryOf(item, at);
    // The API server leaves out the kind and version of the items of such a List.
    const ofKind = { apiVersion: list.apiVersion, ...item, kind: item.kind ?? kindOfItems };
    if (ofKind.kind !== kindOfItems) fail(`${at}kind`, ofKind.kind, `"${kindOfItems}"`);
    return entryOf(ofKind, at);
  });
}

function checkVersion({ apiVersion }: Fields, valid: string, at: string): void {
  if ((apiVersion ?? valid) !== valid) fail(`${at}apiVersion`, apiVersion, `"${valid}"`);
}

type Entry = Workload | OtherManifest;

const isWorkload = (entry: Entry): entry is Workload => 'pods' in entry;

// `at`: its position in the document, a prefix of field names.
function entryOf(fields: Fields, at: string): Entry {
  const { kind } = fields;
  if (kind === 'Pod' || (kind === undefined && at === '')) return workloadOfPod(fields, at);
  const rules = typeof kind === 'string' ? KINDS.get(kind) : undefined;
  return rules ? workloadOf(fields, rules, at) : otherOf(fields, at);
}

// Refuses a misspelt kind or a custom one with pods: numalign admits all pods or none.
function otherOf(fields: Fields, at: string): OtherManifest {
  const { kind, spec, metadata } = fields;
  if (!isName(kind) || itemKinds(kind) !== undefined || hasContainers(spec, 0))
    fail(`${at}kind`, kind, VALID_KINDS);
  const name = isObject(metadata) && isName(metadata.name) ? metadata.name : undefined;
  return { kind, name, field: `${at}kind` };
}

// True for the spec of a pod, and for one with a pod template where the kinds of Kubernetes have
// it.
function hasContainers(spec: unknown, depth: number): boolean {
  if (!isObject(spec)) return false;
  if (Array.isArray(spec.containers)) return true;
  const inner = [spec.template, spec.jobTemplate].filter(isObject);
  return depth < 2 && inner.some((template) => hasContainers(template.spec, depth + 1));
}

function workloadOf(fields: Fields, rules: Kind, at: string): Workload {
  checkVersion(fields, rules.apiVersion, at);
  let [holder, path] = [fields, ''];
  for (const name of rules.path) {
    path = path === '' ? `${at}${name}` : `${path}.${name}`;
    holder = podShape.object(holder[name], path);
  }
  const field = path === '' ? `${at}template` : `${path}.template`;
  const template = podShape.object(holder.template, field);
  const spec = podShape.object(template.spec, `${field}.spec`);
  const { labels, annotations } = podShape.object(template.metadata ?? {}, `${field}.metadata`);
  const { name, namespace } = namesOf(fields, at);
  const first = fields.kind === 'StatefulSet' ? firstOrdinal(holder, path) : 0;
  const replicas = rules.replicas(holder, path);
  const podAt = (i: number): PodSpec => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...(isObject(labels) && { labels }),
      ...(isObject(annotations) && { annotations }),
      ...identity(namespace, name, first + i),
    },
    spec,
  });
  return {
    kind: fields.kind as string,
    name,
    replicas,
    path: field,
    pods: (count = replicas) => Array.from({ length: count }, (_, i) => podAt(i)),
  };
}

function firstOrdinal({ ordinals }: Fields, path: string): number {
  const { start } = podShape.object(ordinals ?? {}, `${path}.ordinals`);
  return podShape.whole(start ?? 0, `${path}.ordinals.start`);
}

function namesOf({ metadata }: Fields, at: string) {
  const { name, namespace } = podShape.object(metadata ?? {}, `${at}metadata`);
  const text = (value: unknown, field: string) =>
    value === undefined || value === null
      ? undefined
      : podShape.that(value, `${at}metadata.${field}`, isName, NAME);
  return { name: text(name, 'name'), namespace: text(namespace, 'namespace') };
}

// A workload without a name, such as one with `generateName`, has pods without names.
function identity(namespace: string | undefined, name: string | undefined, ordinal: number) {
  const podName = name === undefined ? undefined : `${name}-${ordinal}`;
  return {
    ...(namespace !== undefined && { namespace }),
    ...(podName !== undefined && { name: podName, uid: nameUid(namespace ?? DEFAULT_NAMESPACE, podName) }),
  };
}

// `pod`: a manifest or a plain pod.
function workloadOfPod(pod: Fields, at: string): Workload {
  const isManifest = hasManifestKeys(pod);
  const metadata = isManifest ? podShape.object(pod.metadata ?? {}, `${at}metadata`) : pod;
  const withNames = (names: object): PodSpec =>
    isManifest ? { ...pod, metadata: { ...metadata, ...names } } : { ...pod, ...names };
  const { name, namespace } = namesOf(isManifest ? pod : { metadata: { name: pod.name } }, at);
  const keepsUid = name === undefined || (metadata.uid !== undefined && metadata.uid !== null);
  const single = keepsUid
    ? (pod as PodSpec)
    : withNames({ uid: nameUid(namespace ?? DEFAULT_NAMESPACE, name) });
  const copyAt = (i: number) => withNames({ uid: undefined, ...identity(namespace, name, i) });
  return {
    kind: 'Pod',
    name,
    replicas: 1,
    path: at.slice(0, -1),
    pods: (count = 1) => (count === 1 ? [single] : Array.from({ length: count }, (_, i) => copyAt(i))),
  };
}
