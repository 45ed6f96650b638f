// Setting: one kernel setting that quiet grants change, and how its value follows from their
// demands.
import type { QuietSetting } from '../../account/assignments.js';
import type { QuietPart } from '../../account/pod-assignment.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import type { QuietDemand } from './demands.js';
import type { KernelFiles } from './kernel-files.js';

/** What grants demand of one part. */
export interface PartDemand {
  readonly topology: Topology;
  /** The demands of all grants that ask for the part; their CPUs are disjoint. */
  readonly demands: readonly QuietDemand[];
  /** The CPUs of all demands. */
  readonly cpus: CpuSet;
}

/** The setting whose value new settings start with, and how they write that value. */
export interface Inheritance {
  readonly path: string;
  readonly convert: (value: string) => string;
}

/** Values are canonical texts: equal if they mean the same. */
export interface Setting {
  readonly path: string;
  /** See {@link QuietSetting.identity}. */
  readonly identity: string | null;
  /** Whether a read may return the value from before the last write. */
  readonly isDelayed?: boolean;
  /** A name for people, such as `IRQ 24 (virtio0-input.0)`. */
  readonly title: string;
  /**
   * Undefined if the setting no longer exists. @throws an error with the kernel's `code` if it
   * cannot be read
   */
  read(): string | undefined | Promise<string | undefined>;
  /** @throws an error with the kernel's `code` */
  write(value: string): void | Promise<void>;
  /**
   * `base` without what the demand excludes; `base` itself if the demand excludes nothing of it.
   */
  target(base: string, demand: PartDemand): string;
  /**
   * Whether a value that numalign has written does as well as the target, given what the kernel
   * makes of it. If left out, only the target will do.
   */
  suffices?(value: string, target: string, demand: PartDemand): boolean;
  /** For settings that come and go: what they start with. */
  readonly inherits?: Inheritance;
  /**
   * The demand's CPUs that a value leaves disturbed, judged by the value read back or by its effect
   * in the kernel. For `grant.quiet`.
   */
  disturbs(value: string, demand: PartDemand): CpuSet;
}

/** A part of quiet, with its settings on this machine now. */
export interface Part {
  readonly name: QuietPart;
  /**
   * The settings in the order in which to write them; they are restored in the opposite order.
   * `demand`: what grants want now. `paths`: paths of settings of this part on record, which the
   * result must include while they exist. Lazy: there are hundreds of interrupts, and each takes
   * several reads to find.
   */
  settings(files: KernelFiles, demand: PartDemand, paths: readonly string[]): Iterable<Setting>;
  /**
   * The recorded settings of the part that this process cannot see although they may exist, in
   * another namespace or where nothing is mounted. They stay on record for a process that sees
   * them.
   */
  hidden(files: KernelFiles, settings: readonly QuietSetting[]): readonly QuietSetting[];
  /**
   * Why the part cannot be reached, or not fully, apart from its settings: no such hardware, no
   * driver, not mounted, RFS steers packets whatever the masks are. Sentences that say what to do;
   * empty if nothing stands in the way.
   */
  obstacles(files: KernelFiles, demand: PartDemand): readonly string[];
}
