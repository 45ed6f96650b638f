// QuietRecord: the kernel settings that are changed for quiet grants. Pure.
import type { QuietPart } from './quiet-request.js';

/**
 * A kernel setting that numalign has changed, or is about to. It is on record before it is written,
 * so that it can be restored after any crash.
 */
export interface QuietSetting {
  readonly part: QuietPart;
  /** The file, or another name of the setting. */
  readonly path: string;
  /** Tells the object behind the path from a later one with the same path; null: nothing does. */
  readonly identity: string | null;
  /** The value before numalign changed it. */
  readonly original: string;
  /**
   * Values that numalign wrote, the latest first. If the setting has another value, another program
   * changed it.
   */
  readonly written: readonly string[];
  /** The kernel's error for the latest value; null: none. */
  readonly refusal: string | null;
  /** True if no grant needs it any more, and the process that should restore it could not. */
  readonly isLeftover: boolean;
}

/** All changed settings. */
export interface QuietRecord {
  readonly settings: readonly QuietSetting[];
  /** Members of the file that this version does not know. */
  readonly unknown: Readonly<Record<string, unknown>>;
}
