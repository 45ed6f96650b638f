// Mover: answers the moves that other processes announce for grants of this environment. One per
// state: it looks after each commit while there is such a grant, and causes no other wake-ups.
import type { PodAssignment } from '../account/pod-assignment.js';
import { isMoving, type MovingPod } from '../account/pod-holdings.js';
import { podsThat } from '../account/pod-list-changes.js';
import { publishError } from '../admission/diagnostics.js';
import type { Host } from '../admission/host.js';
import { unlessRefused } from '../base/errors.js';
import { changesSize } from '../decision/changes/move-steps.js';
import type { Store } from '../state/store.js';
import { conduct } from './conduct.js';

const isMovable = ({ movable, elastic }: PodAssignment) => movable !== undefined || elastic !== undefined;

const movablePods = podsThat(isMovable);

/** Movable grants of this environment with an announced move. */
function movesToConduct(host: Host, pods: readonly PodAssignment[]): readonly MovingPod[] {
  const { owners } = host.ledger;
  return pods.filter(
    (pod): pod is MovingPod =>
      isMoving(pod) &&
      (changesSize(pod) ? pod.elastic : pod.movable) !== undefined &&
      pod.upcoming.move.target !== null &&
      pod.upcoming.move.refusal === null &&
      pod.owner.kind === 'process' &&
      owners.isOwn(pod.owner),
  );
}

const keyOf = ({ uid, admittedAt, upcoming }: MovingPod) =>
  `${uid} ${admittedAt} ${upcoming.by} ${upcoming.move.deadline}`;

class Mover {
  #host: Host | undefined;
  #stop: (() => void) | undefined;
  readonly #conducted = new Map<string, Promise<void>>();
  // The last move by the grant's id.
  readonly #latest = new Map<string, Promise<void>>();
  // The grants that the program has: it can answer for no other.
  readonly #handles = new Set<string>();

  constructor(private readonly store: Store) {}

  follow(host: Host, uid: string): void {
    this.#host = host;
    // After a failed look, the next commit causes another one.
    const look = () => unlessRefused(() => this.#look());
    // The watch does not keep the process alive, because the grant ends with the process.
    this.#stop ??= this.store.watch(look, { isQuiet: true });
    // Lets the program add its listeners to a new grant first.
    setImmediate(() => {
      this.#handles.add(uid);
      look();
    });
  }

  #look(): void {
    const host = this.#host!;
    const pods = this.store.read()?.assignments.pods;
    if (!pods) return;
    const movable = movablePods(pods);
    if (!movable.some(({ owner }) => owner.kind === 'process' && this.store.owners.isOwn(owner))) {
      this.#stop?.();
      this.#stop = undefined;
      this.#handles.clear();
      return;
    }
    const uids = new Set(movable.map(({ uid }) => uid));
    for (const uid of this.#handles) if (!uids.has(uid)) this.#handles.delete(uid);
    for (const pod of movesToConduct(host, movable))
      if (this.#handles.has(pod.uid)) void this.conduct(host, pod);
  }

  /** Conducts each announcement only once. Moves of one grant come one after the other. */
  conduct(host: Host, pod: MovingPod): Promise<void> {
    const key = keyOf(pod);
    const running = this.#conducted.get(key);
    if (running) return running;
    const { uid } = pod;
    const conducted = (this.#latest.get(uid) ?? Promise.resolve())
      .then(() => conduct(host, pod))
      .catch((error) => publishError(host, 'apply', error))
      .finally(() => {
        this.#conducted.delete(key);
        if (this.#latest.get(uid) === conducted) this.#latest.delete(uid);
      });
    this.#conducted.set(key, conducted);
    this.#latest.set(uid, conducted);
    return conducted;
  }
}

const newMover = (store: Store) => new Mover(store);

export const moverOf = ({ registry }: Store): Mover => registry.of(newMover);

/** Answers the moves of a grant from now on, if it is movable and belongs to this environment. */
export function answerMoves(host: Host, pod: PodAssignment): void {
  const { owner } = pod;
  if (!isMovable(pod) || owner.kind !== 'process' || !host.ledger.owners.isOwn(owner)) return;
  moverOf(host.ledger).follow(host, pod.uid);
}
