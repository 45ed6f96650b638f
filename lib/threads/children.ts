// The living processes that this environment has started for its grants.
import type { ChildProcess } from 'node:child_process';
import type { PodAssignment } from '../account/pod-assignment.js';
import { NumalignError } from '../base/errors.js';
import type { Store } from '../state/store.js';

// Keyed by grant, not by object: a release by id must see them, too.
const children = () => new Map<string, Set<ChildProcess>>();

/** Counts a child as running on a grant until it exits. */
export function watchChild(store: Store, uid: string, child: ChildProcess): void {
  const all = store.registry.of(children);
  const end = store.use();
  const ofGrant = all.get(uid) ?? new Set();
  all.set(uid, ofGrant.add(child));
  // Prepended: Node calls no listener after one of the user's that throws.
  child.prependOnceListener('exit', () => {
    ofGrant.delete(child);
    if (ofGrant.size === 0) all.delete(uid);
    end();
  });
}

export const hasChild = ({ registry }: Store, uid: string) => registry.of(children).has(uid);

/**
 * @throws ERR_CHILD_ALIVE while a child runs on a grant; `what`: what cannot be done with its CPUs
 */
export function checkNoChild({ registry }: Store, { uid }: Pick<PodAssignment, 'uid'>, what: string): void {
  const [child] = registry.of(children).get(uid) ?? [];
  if (!child) return;
  throw new NumalignError(
    'ERR_CHILD_ALIVE',
    `process ${child.pid}, started for grant ${uid}, still runs on its CPUs, which cannot be ${what}: end it first, or hand the grant over to it`,
    { value: uid, pid: child.pid },
  );
}

/** The pids of the processes that this environment has started for a grant. */
export const childrenOn = ({ registry }: Store, uid: string): readonly number[] =>
  [...(registry.of(children).get(uid) ?? [])].flatMap(({ pid }) => pid ?? []);
