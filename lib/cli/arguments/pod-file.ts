// The pods that a command is to plan or admit: files of them, or of what has them.
import { type Command, Option } from 'commander';
import { NumalignError } from '../../base/errors.js';
import type { PodSpec } from '../../index.js';
import { MANIFEST_KEYS, type PodRequest, parsePod } from '../../input/pods/pod-request.js';
import { checkPodCount, contentsOf, type OtherManifest, type Workload } from '../../input/pods/workload.js';
import { tell } from '../terminal/output.js';
import { printable } from '../terminal/text.js';
import { checkStandardInput, fileName, inPlace, readDocuments } from './documents.js';

export interface FilePod {
  readonly spec: PodSpec;
  /** For messages. */
  readonly place: string;
  readonly request: PodRequest;
}

/** A Pod, or what has a template of pods. */
export interface FileWorkload extends Pick<Workload, 'kind' | 'name' | 'replicas'> {
  /** As many as were asked for; none where its manifest says so. */
  readonly pods: readonly FilePod[];
}

// In one line.
const MOST_NAMED = 10;

export function podFileOption(): Option {
  return new Option(
    '-f, --file <file>',
    'pods, or workloads such as a Deployment: YAML or JSON, several documents allowed; "-": standard input; may be repeated',
  ).argParser((file, before: string[] = []) => [...before, file]);
}

/**
 * The files that were given. Ends the command where there is none, or where two files are to be the
 * standard input.
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
 * The pods and workloads of all files; all are checked. What has no pods, such as a Service, is
 * skipped, and a line for each file says so. `replicas`: of each; else what the manifests say.
 * @throws ERR_INVALID_ARGUMENT, ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_INVALID_OPTION,
 *   ERR_POD_CONFLICT where two pods have one name
 */
export async function readWorkloads(files: readonly string[], replicas?: number): Promise<FileWorkload[]> {
  const contents: FileContents[] = [];
  // One after the other: all of them together are bounded as one is.
  for (const file of files) contents.push(await readFile(file, replicas));
  const names = contents.map(({ name }) => name).join(', ');
  const workloads = contents.flatMap((each) => each.workloads);
  const skipped = contents.filter(({ others }) => others.length > 0);
  if (workloads.length === 0) {
    const only = skipped.flatMap(({ others }) => others);
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
  for (const { name, others } of skipped) tell(`${name}: skipped, without pods: ${summary(others)}`);
  return workloads;
}

interface FileContents {
  /** For messages. */
  readonly name: string;
  readonly workloads: readonly FileWorkload[];
  readonly others: readonly OtherManifest[];
}

async function readFile(file: string, count: number | undefined): Promise<FileContents> {
  const documents = (await readDocuments(file)).map(({ value, place }) => ({
    ...inPlace(place, () => contentsOf(value)),
    place,
  }));
  return {
    name: fileName(file),
    workloads: documents.flatMap(({ workloads, place }) =>
      workloads.map((each) => fileWorkload(each, each.path === '' ? place : `${place}: ${each.path}`, count)),
    ),
    others: documents.flatMap(({ others }) => others),
  };
}

function summary(others: readonly OtherManifest[]): string {
  const shown = others.slice(0, MOST_NAMED).map(({ kind, name }) => (name ? `${kind} ${name}` : kind));
  const more = others.length - shown.length;
  return printable(`${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`);
}

/** The workload with its pods, which are checked. @throws as {@link readWorkloads} */
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

/** The same pod by this uid. REQUIRES: `spec` was checked */
export function withUid(spec: PodSpec, uid: string): PodSpec {
  const isManifest = MANIFEST_KEYS.some((key) => key in spec);
  const metadata = { ...('metadata' in spec && spec.metadata), uid };
  return isManifest ? ({ ...spec, metadata } as PodSpec) : { ...spec, uid };
}

// One of them would be taken for the other.
function checkUids(pods: readonly FilePod[]): void {
  const known = new Map<string, FilePod>();
  for (const pod of pods) {
    const { uid, name, namespace } = pod.request;
    if (uid === undefined) continue;
    const other = known.get(uid);
    known.set(uid, pod);
    if (other === undefined) continue;
    const what = name === undefined ? `uid ${uid}` : `name ${namespace}/${name}`;
    const places = other.place === pod.place ? '' : `: ${other.place} and ${pod.place}`;
    throw new NumalignError('ERR_POD_CONFLICT', `two pods have the ${what}${places}`, { value: uid });
  }
}
