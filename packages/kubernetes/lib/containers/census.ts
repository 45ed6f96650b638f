// Census: takes in containers that already run. What is on record stays where it is, then what has
// its own CPUs according to its cpuset. The rest is admitted as if it came now.
import { CpuSet, NodeSet } from 'numalign';
import { isNumalignError } from 'numalign/tools';
import type { Log } from '../base/log.js';
import type { Container, PodSandbox } from '../nri/messages.js';
import { CHOICE_ANNOTATION } from '../placement/annotations.js';
import { type ContainerRequest, containerRequest } from '../placement/container-request.js';
import type { Rule } from '../placement/rules.js';
import type { Placement } from './container-placement.js';
import type { Grants } from './grants.js';
import type { Reports } from './reports.js';

/** A running container and its place. */
export interface CensusEntry {
  readonly pod: PodSandbox;
  readonly container: Container;
  readonly request: ContainerRequest;
  readonly placement: Placement | null;
  /** The CPUs that the runtime has set; null: all. */
  readonly cpus: CpuSet | null;
}

export interface CensusOptions {
  readonly grants: Grants;
  readonly prefix: string;
  /** The rule that a container follows. */
  readonly ruleOf: (pod: PodSandbox, container: Container) => Rule | undefined;
  readonly log: Log;
  readonly reports: Pick<Reports, 'admitted' | 'refused' | 'disturbed'>;
}

const SHARED: ContainerRequest = {
  pod: null,
  isOfPod: false,
  exclusiveCpus: 0,
  memory: undefined,
  chosenCpus: null,
  millis: 0,
  within: undefined,
  placement: {},
  cdi: false,
  rule: undefined,
};

const unknownPod = (id: string): PodSandbox => ({
  id,
  name: id,
  uid: id,
  namespace: '',
  labels: {},
  annotations: {},
  runtime_handler: '',
  linux: null,
  pid: 0,
});

interface Candidate extends Pick<CensusEntry, 'pod' | 'container' | 'request' | 'cpus'> {
  readonly onRecord: Placement | null;
  /** The memory nodes that the runtime has set; empty: all. */
  readonly mems: NodeSet;
}

const isLocked = (error: unknown) => isNumalignError(error, 'ERR_LOCK_TIMEOUT');

/**
 * A single container cannot make it fail: one without a place runs in the shared pool.
 * @throws ERR_LOCK_TIMEOUT: then it is unknown what the container could have, and no runtime waits
 *   for another try
 */
export async function takeCensus(
  pods: readonly PodSandbox[],
  containers: readonly Container[],
  options: CensusOptions,
): Promise<CensusEntry[]> {
  const podOf = new Map(pods.map((pod) => [pod.id, pod]));
  const candidates = containers.map((container) => candidateOf(podOf, container, options));
  candidates.sort((a, b) => rankOf(a) - rankOf(b));
  const entries: CensusEntry[] = [];
  for (const candidate of candidates) {
    const { pod, container, request, cpus } = candidate;
    let placement: Placement | null = null;
    try {
      placement = await placeRunning(candidate, options);
      if (placement && !candidate.onRecord) reportNew(candidate, placement, options);
    } catch (error) {
      if (isLocked(error)) throw error;
      options.reports.refused(pod, container, 'synchronize', error);
    }
    entries.push({ pod, container, request, cpus, placement });
  }
  return entries;
}

// A container that cannot be read runs in the shared pool, and leaves granted CPUs like the others
// there.
function candidateOf(
  podOf: ReadonlyMap<string, PodSandbox>,
  container: Container,
  options: CensusOptions,
): Candidate {
  const pod = podOf.get(container.pod_sandbox_id) ?? unknownPod(container.pod_sandbox_id);
  const shared = { pod, container, request: SHARED, onRecord: null, cpus: null, mems: NodeSet.EMPTY };
  try {
    const { cpus = '', mems = '' } = container.linux?.resources?.cpu ?? {};
    const request = requestOf(pod, container, options);
    const onRecord = options.grants.find(pod, container);
    const set = { cpus: cpus === '' ? null : CpuSet.parse(cpus), mems: NodeSet.parse(mems) };
    return { ...shared, ...set, request, onRecord };
  } catch (error) {
    options.reports.refused(pod, container, 'synchronize', error);
    return shared;
  }
}

// For a container created without numalign, it is unknown whether its creator chose its CPUs, or a
// plugin that has ended since. In the latter case the container would stay on the few CPUs that
// were free then.
function requestOf(
  pod: PodSandbox,
  container: Container,
  { prefix, ruleOf }: CensusOptions,
): ContainerRequest {
  const request = containerRequest(prefix, pod, container, ruleOf(pod, container));
  return CHOICE_ANNOTATION in container.annotations ? request : { ...request, chosenCpus: null };
}

const rankOf = (candidate: Candidate) => (candidate.onRecord ? 0 : exclusiveCpusOf(candidate) ? 1 : 2);

/** The container's own CPUs according to its cpuset; null: it has none. */
function exclusiveCpusOf({ cpus, request }: Candidate): CpuSet | null {
  return request.exclusiveCpus > 0 && cpus?.size === request.exclusiveCpus ? cpus : null;
}

async function placeRunning(candidate: Candidate, { grants, log }: CensusOptions): Promise<Placement | null> {
  const { pod, container, request, onRecord } = candidate;
  if (onRecord) return onRecord;
  const cpus = exclusiveCpusOf(candidate);
  if (cpus === null) return grants.place(pod, container, request);
  try {
    return await grants.adopt(request, cpus, candidate.mems);
  } catch (error) {
    if (isLocked(error)) throw error;
    // Another container has been granted some of them.
    log('warn', `${container.name} cannot stay on CPUs ${cpus}: ${(error as Error).message}`);
    return grants.place(pod, container, request);
  }
}

function reportNew(
  { pod, container, request }: Candidate,
  placement: Placement,
  { grants, reports }: CensusOptions,
): void {
  const { cpus, memoryNodes } = placement;
  const kind = cpus ? 'exclusive' : 'booked';
  reports.admitted(pod, container, { kind, cpus: `${cpus ?? ''}`, mems: `${memoryNodes}` });
  if (request.quiet) reports.disturbed(pod, container, grants.disturbances(placement));
}
