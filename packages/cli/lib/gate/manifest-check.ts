// What the API server and the scheduler would refuse in pods and workloads: all of it in one pass.
import { contentsOf, isExtendedResource, parsePod, parseQuantity, type Workload } from 'numalign/tools';
import type { FileDocument } from '../arguments/documents.js';
import { type Fields, type Finding, type Findings, fieldsOf, findingOf, listOf, mustBe } from './findings.js';
import { metadataFindings } from './names.js';

const CODE = 'ERR_INVALID_POD';

/** What pods are held against. */
export interface ManifestRules {
  readonly findings: Findings;
  /** The resources whose devices are known. */
  readonly devices: ReadonlySet<string>;
}

/** Adds what is refused in a document. True if there is nothing. */
export function checkManifests(document: FileDocument, rules: ManifestRules): boolean {
  const { findings, devices } = rules;
  const before = findings.size;
  let workloads: readonly Workload[] = [];
  const whole = findingOf(() => {
    workloads = contentsOf(document.value).workloads;
  }, '');
  if (whole) findings.add(document, [whole]);
  for (const workload of workloads) {
    const { path, kind } = workload;
    findings.add(document, ownFindings(document.value as Fields, path, kind));
    const [pod] = workload.pods(1);
    findings.add(document, podFindings(pod as Fields, kind, devices), path);
  }
  return findings.size === before;
}

// The names of a workload, which are not those of its pods. The path is that of its template.
function ownFindings(document: Fields, path: string, kind: string): Finding[] {
  const [item, index] = /^items\[(\d+)\]/.exec(path) ?? [];
  const object = item === undefined ? document : fieldsOf(listOf(document.items)[Number(index)]);
  if (path === (item ?? '')) return [];
  return metadataFindings(
    fieldsOf(object.metadata),
    item === undefined ? 'metadata' : `${item}.metadata`,
    kind,
  );
}

const isManifest = (pod: Fields) => ['apiVersion', 'kind', 'metadata', 'spec'].some((key) => key in pod);

function podFindings(pod: Fields, kind: string, devices: ReadonlySet<string>): Finding[] {
  if (!isManifest(pod)) return unlessNone([findingOf(() => parsePod(pod), '')]);
  const spec = fieldsOf(pod.spec);
  const { name, namespace, labels, annotations } = fieldsOf(pod.metadata);
  // The pods of a workload have their names from it.
  const metadata = { ...(kind === 'Pod' && { name, namespace }), labels, annotations };
  const parts = [
    ...metadataFindings(metadata, 'metadata', 'Pod'),
    ...(['initContainers', 'containers'] as const).flatMap((list) =>
      listOf(spec[list]).flatMap((container, i) => containerFindings(fieldsOf(container), list, i)),
    ),
    ...doubleNames(spec),
  ];
  // What no part shows alone, such as amounts of the whole pod.
  const found = parts.length > 0 ? parts : unlessNone([findingOf(() => parsePod(pod), 'spec')]);
  return [...found, ...unknownResources(pod, spec, devices)];
}

const unlessNone = (findings: readonly (Finding | undefined)[]) =>
  findings.filter((finding): finding is Finding => finding !== undefined);

type List = 'containers' | 'initContainers';

// Asks the library about each part alone, since it throws at the first that is wrong.
function containerFindings(container: Fields, list: List, i: number): Finding[] {
  const { name, restartPolicy } = container;
  const { requests, limits } = fieldsOf(container.resources);
  const [asked, most] = [fieldsOf(requests), fieldsOf(limits)];
  const resources = new Set([...Object.keys(asked), ...Object.keys(most)]);
  const of = (amounts: Fields, resource: string) =>
    Object.hasOwn(amounts, resource) ? { [resource]: amounts[resource] } : undefined;
  const own = { name, ...(list === 'initContainers' && { restartPolicy }) };
  return unlessNone([
    containerFinding(own, list, i),
    ...[...resources].map((resource) => {
      const part = { requests: of(asked, resource), limits: of(most, resource) };
      const finding = containerFinding({ name: 'c', resources: part }, list, i);
      const isOfName = finding && /\.(requests|limits)$/.test(finding.field);
      return isOfName ? { ...finding, field: `${finding.field}.${resource}` } : finding;
    }),
  ]);
}

function containerFinding(container: Fields, list: List, i: number): Finding | undefined {
  const other = { name: container.name === 'c' ? 'd' : 'c' };
  const containers = list === 'containers' ? [container] : [other];
  const spec = { containers, ...(list === 'initContainers' && { initContainers: [container] }) };
  const own = `spec.${list}[${i}]`;
  const finding = findingOf(() => parsePod({ kind: 'Pod', spec }), own);
  if (!finding) return undefined;
  const place = (text: string) => text.replace(`spec.${list}[0]`, own);
  return { ...finding, field: place(finding.field), message: place(finding.message) };
}

function doubleNames(spec: Fields): Finding[] {
  const seen = new Set<unknown>();
  return (['initContainers', 'containers'] as const).flatMap((list) =>
    listOf(spec[list]).flatMap((container, i) => {
      const { name } = fieldsOf(container);
      if (name === undefined || !seen.has(name)) {
        seen.add(name);
        return [];
      }
      return [mustBe(CODE, `spec.${list}[${i}].name`, name, 'unique in the pod')];
    }),
  );
}

// Resources of no machine: no scheduler finds a node for the pod.
function unknownResources(pod: Fields, spec: Fields, devices: ReadonlySet<string>): Finding[] {
  const { requestMappings } = fieldsOf(fieldsOf(pod.status).extendedResourceClaimStatus);
  const ofDrivers = new Set(listOf(requestMappings).map((each) => fieldsOf(each).resourceName));
  return (['initContainers', 'containers'] as const).flatMap((list) =>
    listOf(spec[list]).flatMap((container, i) => {
      const { requests, limits } = fieldsOf(fieldsOf(container).resources);
      const amounts = { ...fieldsOf(requests), ...fieldsOf(limits) };
      return Object.keys(amounts).flatMap((resource): Finding[] => {
        const isKnown = devices.has(resource) || ofDrivers.has(resource);
        if (isKnown || !isExtendedResource(resource) || !isPositive(amounts[resource])) return [];
        const part = Object.hasOwn(fieldsOf(limits), resource) ? 'limits' : 'requests';
        const field = `spec.${list}[${i}].resources.${part}.${resource}`;
        return [{ code: CODE, field, message: `${field}: ${noDevices(resource)}` }];
      });
    }),
  );
}

/** Why a resource is on no machine. */
export const noDevices = (resource: string) =>
  `no device is ${resource} here: say which are, such as --device ${resource}=class:0200`;

function isPositive(amount: unknown): boolean {
  try {
    return parseQuantity(amount, '') > 0n;
  } catch {
    return false;
  }
}
