// Reads the files of pods and workloads that a command plans or admits.
import { type Command, Option } from 'commander';
import { NumalignError, type PodSpec } from 'numalign';
import {
  checkPodCount,
  contentsOf,
  type OtherManifest,
  type PodRequest,
  parsePod,
  parseQuantity,
  type Workload,
} from 'numalign/tools';
import { tell } from '../terminal/output.js';
import { printable } from '../terminal/text.js';
import { checkStandardInput, type FileDocument, fileName, inPlace, readDocuments } from './documents.js';

export interface FilePod {
  readonly spec: PodSpec;
  /** For messages. */
  readonly place: string;
  readonly request: PodRequest;
}

/** A Pod, or an object with a pod template. */
export interface FileWorkload extends Pick<Workload, 'kind' | 'name' | 'replicas'> {
  /** Empty if the manifest has no replicas. */
  readonly pods: readonly FilePod[];
}

/** Looks at documents before they are parsed. */
export interface DocumentCheck {
  /** True if the document may be parsed. */
  readonly isRight: (document: FileDocument) => boolean;
  /** Throws if one may not. */
  readonly end: () => void;
}

/** Reads documents besides those with pods. */
export interface OtherReader {
  readonly read: (document: FileDocument) => void;
  /** What needs no mention then. */
  readonly isRead: (other: OtherManifest) => boolean;
}

const NO_READER: OtherReader = { read: () => {}, isRead: () => false };

const NO_CHECK: DocumentCheck = { isRight: () => true, end: () => {} };

// The most names in one line.
const MOST_NAMES = 10;

export function podFileOption(): Option {
  return new Option(
    '-f, --file <file>',
    'pods, or workloads such as a Deployment: YAML or JSON, several documents allowed; "-": standard input; may be repeated',
  ).argParser((file, before: string[] = []) => [...before, file]);
}

/**
 * The files of `--file`. Ends the command if there is none, or if two files are the standard input.
 */
export function filesOf(
  command: Command,
  flags: { file?: string[]; config?: string; devices?: string },
): readonly string[] {
  const { file } = flags;
  if (file === undefined) command.error("error: required option '-f, --file <file>' not specified");
  checkStandardInput(command, flags);
  return file;
}

/**
 * Reads and checks the pods and workloads of all files. It skips objects without pods, such as a
 * Service, and prints a line about them for each file. `replicas` replaces the number in the
 * manifests. `check` may refuse documents, and `reader` takes others.
 * @throws ERR_INVALID_ARGUMENT, ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_INVALID_OPTION,
 *   ERR_POD_CONFLICT if two pods have one name
 */
export async function readWorkloads(
  files: readonly string[],
  replicas?: number,
  check = NO_CHECK,
  reader = NO_READER,
): Promise<FileWorkload[]> {
  const contents: FileContents[] = [];
  // One after the other, so that only one file is in memory.
  for (const file of files) contents.push(await readFile(file, replicas, check, reader));
  check.end();
  const names = contents.map(({ name }) => name).join(', ');
  const workloads = contents.flatMap((each) => each.workloads);
  const withOthers = contents.filter(({ others }) => others.length > 0);
  if (workloads.length === 0) {
    const only = withOthers.flatMap(({ others }) => others);
    const what = only.length > 0 ? `, only ${summary(only)}` : '';
    throw new NumalignError('ERR_INVALID_ARGUMENT', `${names}: there is no pod in it${what}`, {
      value: files.length === 1 ? files[0] : files,
      valid: 'a manifest of kind Pod, or of a workload such as a Deployment',
    });
  }
  inPlace(names, () => {
    checkPodCount(workloads.map(({ pods }) => ({ replicas: pods.length })));
    checkUids(workloads.flatMap(({ pods }) => pods));
  });
  for (const { name, others } of withOthers) tell(`${name}: skipped, without pods: ${summary(others)}`);
  for (const [pod] of workloads.map(({ pods }) => pods))
    for (const text of fractionsIn(pod?.spec, '')) tell(`${pod!.place}: ${text}`);
  return workloads;
}

interface FileContents {
  /** For messages. */
  readonly name: string;
  readonly workloads: readonly FileWorkload[];
  readonly others: readonly OtherManifest[];
}

async function readFile(
  file: string,
  count: number | undefined,
  { isRight }: DocumentCheck,
  { read, isRead }: OtherReader,
): Promise<FileContents> {
  const all = await readDocuments(file);
  for (const { value, place } of all) inPlace(place, () => checkNoDevices(value));
  for (const document of all) read(document);
  const documents = all
    .filter(isRight)
    .map(({ value, place }) => ({ ...inPlace(place, () => contentsOf(value)), place }));
  return {
    name: fileName(file),
    workloads: documents.flatMap(({ workloads, place }) =>
      workloads.map((each) => fileWorkload(each, each.path === '' ? place : `${place}: ${each.path}`, count)),
    ),
    others: documents.flatMap(({ others }) => others).filter((other) => !isRead(other)),
  };
}

// Devices and pods are both in files.
function checkNoDevices(value: unknown): void {
  const resource = Object.keys(value ?? {}).find((key) => key.includes('/'));
  if (resource === undefined) return;
  throw new NumalignError(
    'ERR_INVALID_ARGUMENT',
    `it has devices (${resource}), no pods: give it with --devices`,
    {
      value: resource,
      valid: 'a manifest of kind Pod, or of a workload such as a Deployment',
    },
  );
}

const CONTAINED = ['spec', 'containers', 'initContainers', 'resources', 'requests', 'limits'];
const OF_BYTES = ['memory', 'ephemeral-storage'];

// The amounts of a fraction of a byte, such as 500m, which Kubernetes takes with a warning too.
function fractionsIn(value: unknown, path: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
    const at = Array.isArray(value) ? `${path}[${key}]` : `${path}.${key}`;
    if (OF_BYTES.includes(key)) return isFraction(inner) ? [fractionText(at.slice(1), inner)] : [];
    return Array.isArray(value) || CONTAINED.includes(key) ? fractionsIn(inner, at) : [];
  });
}

const isFraction = (bytes: unknown): bytes is string | number => parseQuantity(bytes, '') % 10n ** 9n !== 0n;

const fractionText = (field: string, bytes: string | number) =>
  `warning: ${field} is a fraction of a byte (${bytes}); did you mean ${String(bytes).replace(/m$/, 'Mi')}?`;

function summary(others: readonly OtherManifest[]): string {
  const names = others.slice(0, MOST_NAMES).map(({ kind, name }) => (name ? `${kind} ${name}` : kind));
  const more = others.length - names.length;
  return printable(`${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`);
}

/** The workload with its pods, checked. @throws the errors of {@link readWorkloads} */
export function fileWorkload(
  { kind, name, replicas, pods }: Workload,
  place: string,
  count = replicas,
): FileWorkload {
  const filePods = pods(count).map((spec) => ({
    spec,
    place,
    request: inPlace(place, () => parsePod(spec)),
  }));
  return { kind, name, replicas, pods: filePods };
}

// Two pods with one uid would count as one.
function checkUids(pods: readonly FilePod[]): void {
  const podOfUid = new Map<string, FilePod>();
  for (const pod of pods) {
    const { uid, name, namespace } = pod.request;
    if (uid === undefined) continue;
    const other = podOfUid.get(uid);
    podOfUid.set(uid, pod);
    if (other === undefined) continue;
    const what = name === undefined ? `uid ${uid}` : `name ${namespace}/${name}`;
    const places = other.place === pod.place ? '' : `: ${other.place} and ${pod.place}`;
    throw new NumalignError('ERR_POD_CONFLICT', `two pods have the ${what}${places}`, { value: uid });
  }
}
