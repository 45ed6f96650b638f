// Processes that work for quiet grants on a machine in memory, one after the other: they end at any
// step, and commits fail. MachineQuieter and the commit are the real ones.
import { type Assignments, emptyAssignments } from '../../lib/account/assignments.js';
import type { QuietRequest } from '../../lib/account/pod-assignment.js';
import { JUST_PLACED, type PodAssignment } from '../../lib/account/pod-assignment.js';
import { removePods } from '../../lib/account/pod-changes.js';
import type { Host } from '../../lib/admission/host.js';
import { commitEnforced } from '../../lib/admission/transact.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { noEnforcer } from '../../lib/enforcement/enforcer.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';
import { ANY_NODES } from '../../lib/machine/hints.js';
import { cpusOfDemands, demandsFor, quietDemands } from '../../lib/quiet/kernel/demands.js';
import { MachineQuieter } from '../../lib/quiet/machine-quieter.js';
import { isQuietUnsettled } from '../../lib/reconcile/quiet-settings.js';
import { NO_FILES, QuietMachine } from './quiet-machine.js';

const CPUS = 8;
const TOPOLOGY = discover({ synthetic: `core:${CPUS} pu:1` });

const OWNER = { pid: 1, command: 'test', cgroup: null, unknown: {} };

/** A grant of a process. */
export function podOf(uid: string, process: string, cpus: CpuSet, quiet: QuietRequest): PodAssignment {
  return {
    ...JUST_PLACED,
    ...{ uid, name: uid, resources: undefined, booking: null, policy: 'none', scope: 'container' },
    ...{ options: {}, quiet, admittedAt: '2026-01-01T00:00:00.000Z', unknown: {} },
    owner: { ...OWNER, kind: 'process', uuid: process },
    containers: [
      {
        ...{ name: 'main', kind: 'app', started: true, request: { cpu: 1000 }, isolation: 'container' },
        ...{ cpus, held: CpuSet.EMPTY, hint: ANY_NODES, memory: [], devices: {}, unknown: {} },
        reusable: { cpus: CpuSet.EMPTY, memory: [], devices: {} },
      },
    ],
  };
}

/** Ends a process: it does nothing any more. */
export interface End {
  readonly at: number;
  readonly isAfter: boolean;
}

const LEDGER = { owners: { isOwn: () => true } };

interface HowToCarryOn {
  readonly end?: End;
  /** Checks all settings. */
  readonly isReview?: boolean;
  /** The same, except for paths that are left alone. */
  readonly isGivenUp?: (path: string) => boolean;
}

export const DISK_IS_FULL = new Error('the disk is full');

export class QuietWorld {
  readonly machine: QuietMachine;
  state: Assignments = emptyAssignments(DEFAULT_SETTINGS);
  /** Paths that other programs have changed since a process of ours checked all of them. */
  readonly foreign = new Set<string>();
  /** Of commits. */
  fullDiskAt = Number.POSITIVE_INFINITY;
  steps = 0;
  commits = 0;
  /** Disturbances at a step though a grant was to be quiet there. */
  readonly disturbances: string[] = [];
  readonly #topology: Topology;
  #end: End | undefined;
  #ended: () => void = () => {};
  #quiet: readonly PodAssignment[] = [];

  private constructor(topology: Topology, value: (path: string) => string) {
    this.#topology = topology;
    this.machine = new QuietMachine(3, 2, CPUS, value);
    this.machine.step = (name, act) => this.#step(name, act);
  }

  /** `value`: the initial value of the setting at a path. */
  static async create(value: (path: string) => string): Promise<QuietWorld> {
    return new QuietWorld(await TOPOLOGY, value);
  }

  async #step(name: string, act: () => void): Promise<void> {
    const end = this.#end?.at === this.steps++ ? this.#end : undefined;
    if (end && !end.isAfter) await this.#never();
    act();
    this.#look(name);
    if (end) await this.#never();
  }

  #never(): Promise<never> {
    this.#ended();
    return new Promise<never>(() => {});
  }

  // At every moment.
  #look(name: string): void {
    const demands = quietDemands({ pods: this.#quiet });
    for (const [path, { part, value }] of this.machine.things) {
      if (part === 'idle' || this.foreign.has(path) || this.machine.refused.has(path)) continue;
      const cpus = cpusOfDemands(demandsFor(demands, part));
      if (CpuSet.parse(value).intersects(cpus)) this.disturbances.push(`${name}: ${path} is ${value}`);
    }
  }

  get #host(): Host {
    const quieter = new MachineQuieter(
      () => this.#topology,
      this.machine.parts,
      { ...NO_FILES, isWritable: (path) => this.machine.isWritable(path) },
      () => [],
    );
    return {
      quieter,
      topology: this.#topology,
      enforcer: noEnforcer(),
      enforcement: {},
      ledger: LEDGER,
    } as unknown as Host;
  }

  readonly #commit = async (next: Assignments) => {
    if (this.commits++ >= this.fullDiskAt) throw DISK_IS_FULL;
    await this.#step('commit', () => {
      this.state = next;
    });
  };

  /**
   * A process continues to the next state. `end`: where it ends. Returns false if it has ended;
   * throws the error of the commit.
   */
  async carryOn(next: Assignments, { end, isReview = false, isGivenUp }: HowToCarryOn = {}) {
    const { state } = this;
    this.steps = 0;
    this.commits = 0;
    this.#end = end;
    const kept = new Map(next.pods.map((pod) => [pod.uid, pod]));
    // On the CPUs that they keep.
    this.#quiet = state.pods.flatMap((pod) => {
      const later = kept.get(pod.uid);
      return later ? [withCpus(pod, cpusOf(pod).intersection(cpusOf(later)))] : [];
    });
    const ended = new Promise<false>((resolve) => {
      this.#ended = () => resolve(false);
    });
    const review = isGivenUp ?? (isReview ? () => false : undefined);
    const options = review ? { quietReview: { isGivenUp: review } } : {};
    const isDone = await Promise.race([
      ended,
      commitEnforced(this.#host, { before: state, wanted: next, commit: this.#commit }, options).then(
        () => true,
      ),
    ]);
    if (isDone && (isReview || quietDemands(next) !== quietDemands(state))) this.foreign.clear();
    this.#quiet = [];
    return isDone;
  }

  /** The next process after one has ended: it ends the grants of the dead one on record. */
  async recover(process: string, end?: End): Promise<boolean> {
    const dead = this.state.pods.filter(({ owner }) => owner.uuid === process).map(({ uid }) => uid);
    if (dead.length === 0) return true;
    return this.carryOn(removePods(this.state, new Set(dead)), end ? { end } : {});
  }

  /** Like an opener, and every round: all settings are checked and repaired. */
  async settle(): Promise<void> {
    if ((await isQuietUnsettled(this.#host, this.state)) || this.foreign.size > 0)
      await this.carryOn(this.state, { isReview: true });
  }

  /** Keys of the settings that the reconciler would repair. */
  async compare(): Promise<string[]> {
    return (await this.#host.quieter.compare(this.state)).drifts.map(({ key }) => key);
  }

  /** Settings that differ from their targets. `but`: paths that are left out. */
  wrong(but: ReadonlySet<string> = this.foreign) {
    const demands = quietDemands(this.state);
    const expected = this.machine.expected((part) => {
      const its = demandsFor(demands, part);
      return { topology: this.#topology, demands: its, cpus: cpusOfDemands(its) };
    });
    const values = this.machine.values();
    return Object.keys(values)
      .filter((path) => !but.has(path) && values[path] !== expected[path])
      .map((path) => `${path} is ${values[path]}, not ${expected[path]}`);
  }

  /** Another program sets it, to a value that differs from numalign's. */
  setForeign(path: string, value: string): void {
    if (!this.machine.things.has(path)) return;
    const record = this.state.quiet?.settings.find((each) => each.path === path);
    if (record?.written.includes(value)) return;
    this.machine.set(path, value);
    this.foreign.add(path);
  }
}

export const cpusOf = ({ containers }: PodAssignment) => containers[0]!.cpus;
export const withCpus = (pod: PodAssignment, cpus: CpuSet): PodAssignment => ({
  ...pod,
  containers: [{ ...pod.containers[0]!, cpus }],
});
