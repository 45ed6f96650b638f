// CgroupWatch: watches cgroups that own grants. In cgroup v2 the file cgroup.events changes when
// the last process ends, see cgroups(7). In v1 nothing reports it.
import { join } from 'node:path';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { unlessThrown } from '../../base/errors.js';
import { IN_MODIFY, watchFile } from '../files/folder-events.js';

/** Never keeps the process alive. */
export class CgroupWatch {
  // By pod uid; undefined if nothing reports the end of the cgroup.
  readonly #ends = new Map<string, (() => void) | undefined>();

  /** `onChange`: called when the owner of the grant with this uid may have ended. */
  constructor(private readonly onChange: (uid: string) => void) {}

  /** True if the end of some cgroup goes unreported. */
  get isBlind(): boolean {
    return [...this.#ends.values()].includes(undefined);
  }

  /** The uids of the pods that cgroups own. */
  get uids(): ReadonlySet<string> {
    return new Set(this.#ends.keys());
  }

  /** Takes these pods as they are on record now. */
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
    return unlessThrown(() => watchFile(join(path, 'cgroup.events'), IN_MODIFY, () => this.onChange(uid)));
  }
}
