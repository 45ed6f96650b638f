// Setting: one thing of the kernel that quiet grants have changed, and how its value follows from
// theirs.
import type { QuietSetting } from '../../account/quiet/quiet-record.js';
import type { QuietPart } from '../../account/quiet/quiet-request.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import type { QuietDemand } from './demands.js';
import type { KernelFiles } from './kernel-files.js';

/** What is demanded of one part. */
export interface PartDemand {
  readonly topology: Topology;
  /** Of all grants that ask for the part; their CPUs are disjoint. */
  readonly demands: readonly QuietDemand[];
  /** The CPUs of all of them. */
  readonly cpus: CpuSet;
}

/** The setting with whose value things begin, and its value as they have it. */
export interface Inheritance {
  readonly path: string;
  readonly convert: (value: string) => string;
}

/** Values are canonical texts: equal where they mean the same. */
export interface Setting {
  readonly path: string;
  /** See {@link QuietSetting.identity}. */
  readonly identity: string | null;
  /** Whether what is read may be older than what was written: what was there before, that is. */
  readonly isDelayed?: boolean;
  /** For people, such as `IRQ 24 (virtio0-input.0)`. */
  readonly title: string;
  /** undefined: it is gone. @throws an error with the kernel's `code`, where it may not be read */
  read(): string | undefined | Promise<string | undefined>;
  /** @throws an error with the kernel's `code` */
  write(value: string): void | Promise<void>;
  /** `base`, less what the demand excludes; `base` itself where it excludes nothing of it. */
  target(base: string, demand: PartDemand): string;
  /**
   * Whether a value that numalign has written does as well as the target, by what the kernel has made
   * of it. Left out: only the target does.
   */
  suffices?(value: string, target: string, demand: PartDemand): boolean;
  /** Of things that come and go: what they begin with. */
  readonly inherits?: Inheritance;
  /**
   * Of the demand's CPUs, those that a value leaves disturbed, whatever was written: the value read
   * back, or what the kernel makes of it. For `grant.quiet`.
   */
  disturbs(value: string, demand: PartDemand): CpuSet;
}

/** A part of quiet: which settings it has on this machine now. */
export interface Part {
  readonly name: QuietPart;
  /**
   * In the order in which they are to be written; they are restored in the opposite order.
   * `demand`: what is wanted now; `recorded`: paths of settings of this part that are on record,
   * which must be among the answer as long as they are there. One after the other as they are asked
   * for: there are hundreds of interrupts, and to find one takes several reads.
   */
  settings(files: KernelFiles, demand: PartDemand, recorded: readonly string[]): Iterable<Setting>;
  /**
   * Of what is on record of the part, what cannot be seen from here, though it may be there: in
   * another namespace, or where nothing is mounted. It stays on record, for a process that sees it.
   */
  hidden(files: KernelFiles, recorded: readonly QuietSetting[]): readonly QuietSetting[];
  /**
   * Why the part cannot be had, or not wholly, apart from its settings: no such hardware, no driver,
   * not mounted, RFS steers packets whatever the masks are. Sentences with what to do; none: nothing.
   */
  obstacles(files: KernelFiles, demand: PartDemand): readonly string[];
}
