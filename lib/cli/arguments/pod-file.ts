// The pods that a command is to plan or admit: a file of them, or of what has them.
import { type Command, Option } from 'commander';
import { NumalignError } from '../../base/errors.js';
import type { PodSpec } from '../../index.js';
import { type PodRequest, parsePod } from '../../input/pod-request.js';
import { checkPodCount, type Workload, workloadsOf } from '../../input/workload.js';
import { checkStandardInput, type FileDocument, fileName, inPlace, readDocuments } from './documents.js';

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

export function podFileOption(): Option {
  return new Option(
    '-f, --file <file>',
    'pods, or workloads such as a Deployment: YAML or JSON, several documents allowed; "-": standard input',
  );
}

/**
 * The file that was given. Ends the command where there is none, or where another file is to be the
 * standard input too.
 */
export function fileOf(
  command: Command,
  flags: { file?: string; config?: string; devices?: string },
): string {
  const { file } = flags;
  if (file === undefined) command.error("error: required option '-f, --file <file>' not specified");
  checkStandardInput(command, flags);
  return file;
}

/**
 * Every document is a pod or a workload, and all are checked. `replicas`: of each; else what the
 * manifests say.
 * @throws ERR_INVALID_ARGUMENT, ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_INVALID_OPTION,
 *   ERR_POD_CONFLICT where two pods have one name
 */
export async function readWorkloads(file: string, replicas?: number): Promise<FileWorkload[]> {
  const documents = await readDocuments(file);
  if (documents.length === 0) {
    throw new NumalignError('ERR_INVALID_ARGUMENT', `${fileName(file)}: there is no pod in it`, {
      value: file,
      valid: 'a manifest of kind Pod, or of a workload such as a Deployment',
    });
  }
  const workloads = documents.flatMap((document) => workloadsIn(document, replicas));
  inPlace(fileName(file), () => {
    checkPodCount(workloads.map(({ pods }) => ({ replicas: pods.length })));
    checkUids(workloads.flatMap(({ pods }) => pods));
  });
  return workloads;
}

function workloadsIn({ value, place }: FileDocument, replicas: number | undefined): FileWorkload[] {
  return inPlace(place, () => workloadsOf(value)).map((workload) =>
    fileWorkload(workload, workload.path === '' ? place : `${place}: ${workload.path}`, replicas),
  );
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
