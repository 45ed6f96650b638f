// CgroupWatch: what the kernel says of cgroups that own grants. cgroups(7): a cgroup of v2 has a
// file cgroup.events, which changes when its last process ends; of v1 nothing tells.
import { join } from 'node:path';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { IN_MODIFY, watchFile } from '../files/folder-events.js';

/** Never keeps the process alive. */
export class CgroupWatch {
  readonly #changed: (uid: string) => void;
  // By the ids of the pods; undefined: nothing tells.
  readonly #ends = new Map<string, (() => void) | undefined>();

  /** `changed`: the owner of the grant with this uid may have ended. */
  constructor(changed: (uid: string) => void) {
    this.#changed = changed;
  }

  /** Whether there is a cgroup of whose end nothing tells. */
  get isBlind(): boolean {
    return [...this.#ends.values()].includes(undefined);
  }

  /** The ids of the pods that cgroups own. */
  get uids(): ReadonlySet<string> {
    return new Set(this.#ends.keys());
  }

  /** These pods are as they are here from now on. */
  follow(pods: readonly PodAssignment[]): void {
    for (const { uid, owner } of pods) {
      this.forget(uid);
      if (owner.cgroup) this.#ends.set(uid, this.#watch(uid, owner.cgroup.path));
    }
  }

  forget(uid: string): void {
    this.#ends.get(uid)?.();
    this.#ends.delete(uid);
  }

  stop(): void {
    for (const uid of this.uids) this.forget(uid);
  }

  #watch(uid: string, path: string): (() => void) | undefined {
    try {
      return watchFile(join(path, 'cgroup.events'), IN_MODIFY, () => this.#changed(uid));
    } catch {
      return undefined;
    }
  }
}
