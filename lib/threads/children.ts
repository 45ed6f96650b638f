// The processes that this environment has started for its grants and that have not ended.
import type { ChildProcess } from 'node:child_process';
import type { PodAssignment } from '../account/pod-assignment.js';
import { NumalignError } from '../base/errors.js';

// By grant, whichever object started them: releasing by the id must not overlook them.
const children = new Map<string, Set<ChildProcess>>();

/** Counts a child as running on a grant until it exits. */
export function watchChild(uid: string, child: ChildProcess): void {
  const ofGrant = children.get(uid) ?? new Set();
  children.set(uid, ofGrant.add(child));
  child.once('exit', () => {
    ofGrant.delete(child);
    if (ofGrant.size === 0) children.delete(uid);
  });
}

export const hasChild = (uid: string) => children.has(uid);

/**
 * @throws ERR_CHILD_ALIVE while a child runs on a grant; `what`: what can not be done with its CPUs
 */
export function checkNoChild({ uid }: Pick<PodAssignment, 'uid'>, what: string): void {
  const [child] = children.get(uid) ?? [];
  if (!child) return;
  throw new NumalignError(
    'ERR_CHILD_ALIVE',
    `process ${child.pid}, started for grant ${uid}, still runs on its CPUs, which cannot be ${what}: end it first, or hand the grant over to it`,
    { value: uid, pid: child.pid },
  );
}
