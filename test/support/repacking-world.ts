// Machines with movable grants, as decisions see them: nothing is recorded.
import { type Assignments, emptyAssignments } from '../../lib/account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../../lib/account/pod-assignment.js';
import { removePods } from '../../lib/account/pod-changes.js';
import { decideWhether } from '../../lib/decision/decision.js';
import type { DeviceResource } from '../../lib/decision/devices/device-resources.js';
import { applySettings, DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import type { Question } from '../../lib/decision/question.js';
import type { Topology } from '../../lib/entries/topology.js';
import { CpuSet, NodeSet } from '../../lib/index.js';
import type { RequiredSettings } from '../../lib/input/given-settings.js';
import { parsePlacement } from '../../lib/input/placement.js';
import { parseAdmit } from '../../lib/input/requests/request.js';
import type { AdmitOptions } from '../../lib/input/requests/request-options.js';
import { guaranteed } from './simulated.js';

export const OWNER: OwnerRecord = {
  ...{ kind: 'persistent', uuid: '', pid: null, command: null, cgroup: null, unknown: {} },
};
const NOW = '2026-01-01T00:00:00.000Z';

/** What a pod asks for: Guaranteed, a container for each. */
export type Amounts = readonly Record<string, number | string>[];

/** A machine's nodes by device. */
export type DeviceNodes = Readonly<Record<string, readonly number[] | null>>;

/** Of a request, and of its manager. */
export type WorldOptions = AdmitOptions & { readonly memoryManagerPolicy?: 'None' | 'Static' };

export class RepackingWorld {
  readonly topology: Topology;
  readonly #devices: ReadonlyMap<string, DeviceResource>;
  #state: Assignments;

  /** `devices`: all of example.com/gpu. */
  constructor(topology: Topology, devices: DeviceNodes = {}, settings: Partial<RequiredSettings> = {}) {
    this.topology = topology;
    this.#state = emptyAssignments(applySettings(DEFAULT_SETTINGS, settings as RequiredSettings));
    const list = Object.entries(devices).map(([id, numaNodes]) => ({ id, numaNodes, healthy: true }));
    const gpu = { name: 'example.com/gpu', devices: list, preferredAllocation: undefined };
    this.#devices = new Map(list.length === 0 ? [] : [['example.com/gpu', gpu]]);
  }

  get state(): Assignments {
    return this.#state;
  }

  /** Grants that consent. */
  get movable(): readonly PodAssignment[] {
    return this.#state.pods.filter(({ movable }) => movable !== undefined);
  }

  question(uid: string, asked: Amounts, { memoryManagerPolicy, ...options }: WorldOptions = {}): Question {
    const containers = asked.map((amounts, i) => guaranteed(`c${i}`, { ...amounts }));
    const request = parseAdmit(
      { uid, name: uid, containers },
      options,
      parsePlacement({ memoryManagerPolicy }),
    );
    return {
      topology: this.topology,
      present: { online: this.topology.cpus, isolated: CpuSet.EMPTY },
      state: this.#state,
      request,
      resources: this.#devices,
      providers: [],
      owner: OWNER,
      uid,
      trialUid: uid,
      now: NOW,
      dryRun: false,
    };
  }

  /**
   * Admits a pod, if there is room. `movable`: it consents, except for these nodes. `within`: only
   * on these CPUs.
   */
  admit(
    uid: string,
    asked: Amounts,
    options: WorldOptions = {},
    { movable, within }: { movable?: readonly number[] | undefined; within?: CpuSet | undefined } = {},
  ): boolean {
    const question = this.question(uid, asked, options);
    return this.admitQuestion(within ? { ...question, within } : question, movable);
  }

  admitQuestion(question: Question, movable: readonly number[] | undefined): boolean {
    const decision = decideWhether(question);
    if (!decision) return false;
    const state = decision.next();
    const consent = movable && { maxPerHour: null, noticeMs: 0, exclude: NodeSet.from(movable) };
    const pods = state.pods.map((pod) =>
      pod === decision.pod && consent ? { ...pod, movable: consent } : pod,
    );
    this.#state = { ...state, pods };
    return true;
  }

  release(...uids: string[]): void {
    this.#state = removePods(this.#state, new Set(uids));
  }
}
