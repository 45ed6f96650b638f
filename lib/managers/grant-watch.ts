// GrantWatch: what happens on the CPUs of the grants of a state, for programs that show it again and
// again.
import type { PodAssignment } from '../account/pod-assignment.js';
import { presentCpus } from '../account/pod-holdings.js';
import type { GrantAudit } from '../audit/account.js';
import { WatchedGrants } from '../audit/watched-grants.js';
import { livingPods } from './audits.js';
import { hostOfView, type ManagerView } from './manager-view.js';

/** A grant of a living owner, as {@link GrantWatch.look} finds it. */
export interface WatchedGrant {
  /** As {@link GrantInfo.uid}. */
  readonly uid: string;
  /** Its name; that of a pod with a namespace before it, such as `default/web-0`. */
  readonly label: string;
  /**
   * What has happened on its CPUs since the first look at it, without their frequency; undefined
   * without CPUs of its own, and on a simulated machine.
   */
  readonly audit?: GrantAudit | undefined;
}

/** Counts what happens on the CPUs of each grant from the first look at it. */
export class GrantWatch {
  readonly #view: ManagerView;
  readonly #watched = new WatchedGrants('first look');

  constructor(view: ManagerView) {
    this.#view = view;
  }

  /**
   * The grants of living owners, of any process. It looks at the machine once for all of them.
   * `memory`: also where their memory is, which takes a millisecond or more a process. `living`: the
   * uids of their grants, if known: to find out, the kernel is asked of each owner.
   * @throws what {@link ManagerView.grants} throws
   */
  look(memory = false, living?: ReadonlySet<string>): WatchedGrant[] {
    const { topology } = this.#view;
    const pods = livingPods(hostOfView(this.#view), living);
    const audited = topology.isSimulated ? [] : pods.filter((pod) => !presentCpus(pod).isEmpty);
    const audits = this.#watched.look(topology, audited, { memory, frequency: false });
    const auditOf = new Map(audits.map((audit) => [audit.grant, audit]));
    return pods.map((pod) => ({ uid: pod.uid, label: labelOf(pod), audit: auditOf.get(pod.uid) }));
  }
}

/** A pod's name is one of its namespace. */
function labelOf({ uid, name, namespace }: PodAssignment): string {
  return namespace === undefined || name === uid ? name : `${namespace}/${name}`;
}
