// A node driven through the operations of a scenario, and its observable state.
import type { Manager, ManagerOptions, PodContainer } from '../../lib/index.js';
import { attempt, type Numalign } from './case.js';
import { lowestIds, type RecordedResource } from './devices.js';
import { recordedHint } from './hint.js';
import { type BytesByNode, bookedOf, memoryFileInOrder, sorted } from './memory.js';
import { type Holding, type Holdings, isSameHoldings, type Placement } from './placement.js';
import { podSpec, type RecordedPod } from './pod.js';
import { readRecord, type StoredPod, writePods } from './state-file.js';

/** How an operation on a pod ended. */
export interface Answer {
  /** Of an admission. */
  readonly admitted?: boolean;
  /** Empty where it was admitted. */
  readonly reason?: string;
  readonly containers?: Holdings;
}

export const REASONS = [
  'TopologyAffinityError',
  'SMTAlignmentError',
  'UnexpectedAdmissionError',
  'EmptyPodSharedPoolError',
];

type NodeOptions = ManagerOptions & { readonly stateDir: string };

function holdingOf({ cpus, isolation, hint, memory, devices }: PodContainer): Holding {
  const list = cpus === null ? null : cpus.toString();
  return { cpus: list, isolation, hint: recordedHint(hint), memory, devices };
}

const holdingsOf = (containers: readonly PodContainer[]): Holdings =>
  Object.fromEntries(containers.map((container) => [container.name, holdingOf(container)]));

export class DrivenNode {
  readonly #numalign: Numalign;
  readonly #options: NodeOptions;
  readonly #resources: readonly RecordedResource[];
  #manager!: Manager;

  private constructor(numalign: Numalign, options: NodeOptions, resources: readonly RecordedResource[]) {
    this.#numalign = numalign;
    this.#options = options;
    this.#resources = resources;
  }

  static async open(
    numalign: Numalign,
    options: NodeOptions,
    resources: readonly RecordedResource[],
  ): Promise<DrivenNode> {
    const node = new DrivenNode(numalign, options, resources);
    await node.#open();
    return node;
  }

  async #open(): Promise<void> {
    this.#manager = await this.#numalign.openManager(this.#options);
    for (const { name, devices, preferredAllocation } of this.#resources) {
      this.#manager.registerDevices(
        name,
        devices,
        preferredAllocation ? { preferredAllocation: lowestIds } : {},
      );
    }
  }

  get reserved(): string {
    return this.#manager.settings().reservedSystemCPUs.toString();
  }

  /** @throws what the package throws, where that is no rejection */
  async admit(pod: RecordedPod): Promise<Answer> {
    try {
      const { containers } = await this.#manager.admit(podSpec(pod), { owner: 'persistent' });
      return { admitted: true, reason: '', containers: holdingsOf(containers) };
    } catch (error) {
      const reason = error instanceof this.#numalign.AdmissionError ? error.details.reason : undefined;
      if (!REASONS.includes(reason as string)) throw error;
      return { admitted: false, reason: reason as string };
    }
  }

  release(uid: string): Promise<void> {
    return this.#manager.release(uid);
  }

  /** Its containers start, one after the other. */
  async start(uid: string, containers: readonly string[]): Promise<Answer> {
    const pod = this.#manager.pod(uid);
    for (const name of containers) await pod.markStarted(name);
    return { containers: holdingsOf(pod.containers) };
  }

  /** Closes the manager and opens another on the same folder. */
  async restart(): Promise<void> {
    this.#manager.close();
    await this.#open();
  }

  /** Goes on with other pods than there are, for which so much memory is booked. */
  async load(pods: readonly StoredPod[], booked: BytesByNode): Promise<void> {
    this.#manager.close();
    writePods(this.#options.stateDir, pods, booked);
    await this.#open();
  }

  /** What the state file says, of which the manager must say the same. */
  observe(): Placement {
    const { pods, bookings, memory: recorded } = readRecord(this.#options.stateDir);
    for (const [uid, holdings] of pods) {
      const reported = this.#manager.pod(uid).containers.map((container) => {
        const hint = recordedHint(this.#manager.getAffinity(uid, container.name));
        return [container.name, { ...holdingOf(container), hint }];
      });
      if (!isSameHoldings(Object.fromEntries(reported), holdings)) {
        throw new Error(
          `the manager says of ${uid} what its state file does not: ${JSON.stringify(reported)}`,
        );
      }
    }
    const memory = this.#manager.memory();
    const sharedPool = this.#manager.sharedPool();
    const reportedMemory = bookedOf(memory);
    const booked = sorted(recorded);
    if (JSON.stringify(reportedMemory) !== JSON.stringify(booked)) {
      throw new Error(
        `the manager says ${JSON.stringify(reportedMemory)} is booked, its state file ${JSON.stringify(booked)}`,
      );
    }
    for (const uid of pods.keys()) {
      const { booking } = this.#manager.pod(uid);
      const read = bookings.get(uid);
      const isSame = booking ? read?.cpus === booking.cpus.toString() : read === undefined;
      if (!isSame) throw new Error(`the manager says of ${uid} what its state file does not`);
    }
    return { pods, bookings, sharedPool: sharedPool.toString(), memory };
  }

  /** Whether two files of the Memory Manager say the same, in whatever order. */
  isSameMemoryFile(a: string, b: string): boolean {
    const texts = attempt(() => [a, b].map((text) => memoryFileInOrder(text, this.#numalign)));
    return 'value' in texts && texts.value[0] === texts.value[1];
  }

  /** The kubelet's state files, as the package would write them. */
  checkpoints(): { readonly cpuCheckpoint: string; readonly memoryCheckpoint: string } {
    const { cpuManagerState, memoryManagerState } = this.#manager.exportKubelet();
    return { cpuCheckpoint: cpuManagerState, memoryCheckpoint: memoryManagerState };
  }

  /**
   * A text of memory_manager_state without the empty lists of some containers; undefined where it is
   * no such text, or its checksum is wrong.
   */
  withoutEmpty(text: string, isOfOne: (uid: string, container: string) => boolean): string | undefined {
    const { parseMemoryManagerState, formatMemoryManagerState } = this.#numalign;
    const read = attempt(() => parseMemoryManagerState(text, { podLevelResourceManagers: true }));
    if ('error' in read) return undefined;
    const entries = [...read.value.entries].map(([uid, containers]) => {
      const kept = [...containers].filter(([name, blocks]) => blocks.length > 0 || !isOfOne(uid, name));
      return [uid, new Map(kept)] as const;
    });
    const left = new Map(entries.filter(([, containers]) => containers.size > 0));
    return formatMemoryManagerState({ ...read.value, entries: left });
  }

  close(): void {
    this.#manager.close();
  }
}
