// Conduct: a process asks the listeners of a grant, moves the grant, and emits the outcome. If the
// grant does not move, it records why.
import { type Assignments, findPod } from '../account/assignments.js';
import { type MovingPod, memoryNodesAt, runningCpus } from '../account/pod-holdings.js';
import { changesUnderWay } from '../admission/changes-under-way.js';
import { publishError } from '../admission/diagnostics.js';
import type { Host } from '../admission/host.js';
import { recordedState } from '../admission/on-record.js';
import { transact } from '../admission/transact.js';
import { unlessRefused } from '../base/errors.js';
import { callListeners } from '../base/notices/listeners.js';
import { changesSize, refuseMove } from '../decision/changes/move-steps.js';
import { askListeners, offRecord, reasonOf } from './answer.js';
import { announcedPod, carryOut, codeOf, conclude, type MovedGrant } from './carry-out.js';
import { emitterIfAny, type GrantEmitter, type MoveEnd, type ResizeEvent } from './move-event.js';

/** Reasons for which the asking process has already ended the move: no refusal is recorded. */
const SILENT = ['no-answer', 'called-off'];

/** Resolves once the grant has moved or stays. Records an error that prevents the move. */
export async function conduct(host: Host, pod: MovingPod): Promise<void> {
  const { ledger } = host;
  const { uid } = pod;
  const end = ledger.use();
  // A release drops the listeners, but each `move` has its `moveEnd`.
  const emitter = emitterIfAny(ledger, uid);
  let endChange: (() => void) | undefined;
  const off = new AbortController();
  const look = () => {
    // An unreadable record calls nothing off.
    const isOff = () => announcedPod(recordedState(host), pod) === undefined;
    if (unlessRefused(isOff, false)) off.abort(offRecord(pod));
  };
  const stop = ledger.watch(look, { isQuiet: true });
  try {
    // It may have been called off while an earlier change of the grant was under way.
    look();
    if (off.signal.aborted) return;
    // The owner of an elastic grant has agreed to every size in its range.
    if (!changesSize(pod)) await askListeners(emitter, host.topology, pod, off.signal);
    stop();
    endChange = ledger.registry.of(changesUnderWay).begin(uid);
    tell(host, pod, await carryOut(host, pod), emitter);
  } catch (error) {
    // A listener may still wait for something.
    off.abort(error);
    await refuse(host, pod, error as Error);
    tell(host, pod, error as Error, emitter);
  } finally {
    stop();
    endChange?.();
    end();
  }
}

async function refuse(host: Host, pod: MovingPod, error: Error): Promise<void> {
  if (SILENT.includes(String(reasonOf(error)))) return;
  try {
    const isConcluded = await transact(host, undefined, async (state, commit) => {
      const now = announcedPod(state, pod);
      if (now && !commit.refusal) await commit(refuseMove(state, now, codeOf(error)), true);
      return now !== undefined || !isBegunHere(host, state, pod);
    });
    if (!isConcluded) conclude(host, pod.uid);
  } catch (failure) {
    publishError(host, 'apply', failure);
    conclude(host, pod.uid);
  }
}

// A commit that failed may be on record nevertheless.
function isBegunHere({ ledger }: Host, state: Assignments, { uid }: MovingPod): boolean {
  const pod = findPod(state, uid);
  return pod?.former !== undefined && ledger.owners.isOwnProcess(pod.upcoming!.by);
}

function tell(
  host: Host,
  before: MovingPod,
  outcome: MovedGrant | Error,
  formerEmitter: GrantEmitter | undefined,
): void {
  const emitter = emitterIfAny(host.ledger, before.uid) ?? formerEmitter;
  if (!emitter) return;
  if (!changesSize(before)) callListeners(emitter, 'moveEnd', moveEnd(host, before, outcome));
  else if (!(outcome instanceof Error)) callListeners(emitter, 'resize', resizeEvent(host, before, outcome));
}

function resizeEvent(
  { topology }: Host,
  { uid, upcoming, ...pod }: MovingPod,
  outcome: MovedGrant,
): ResizeEvent {
  const [before, cpus] = [runningCpus(pod), runningCpus(outcome.pod)];
  return Object.freeze({
    uid,
    before,
    cpus,
    nodes: topology.nodesOf(cpus),
    threads: outcome.threads,
    for: cpus.size < before.size ? upcoming.move.for : null,
  });
}

function moveEnd({ topology }: Host, before: MovingPod, outcome: MovedGrant | Error): MoveEnd {
  const isMoved = !(outcome instanceof Error);
  const pod = isMoved ? outcome.pod : before;
  const cpus = runningCpus(pod);
  return Object.freeze({
    uid: pod.uid,
    isMoved,
    cpus,
    nodes: topology.nodesOf(cpus),
    memoryNodes: memoryNodesAt(topology, pod),
    threads: isMoved ? outcome.threads : null,
    memory: isMoved ? outcome.memory : null,
    error: isMoved ? null : outcome,
  });
}
