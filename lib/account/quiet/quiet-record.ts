// QuietRecord: which settings of the kernel are changed for quiet grants. Pure.
import type { QuietPart } from './quiet-request.js';

/**
 * A setting of the kernel that numalign has changed, or is about to. On record before it is
 * written, so that it can be restored after any crash.
 */
export interface QuietSetting {
  readonly part: QuietPart;
  /** The file, or what else stands for the setting. */
  readonly path: string;
  /** What tells what is behind the path from a later thing of the same path. null: nothing. */
  readonly identity: string | null;
  /** The value before numalign changed it. */
  readonly original: string;
  /** Values of numalign, the latest first: the setting has one of them, or somebody else's. */
  readonly written: readonly string[];
  /** The kernel's error for the latest value; null: none. */
  readonly refusal: string | null;
  /** No grant asks for it any more, and the process that was to restore it could not. */
  readonly isLeftover: boolean;
}

/** All settings that are changed. */
export interface QuietRecord {
  readonly settings: readonly QuietSetting[];
  /** Members of the file that this version does not know. */
  readonly unknown: Readonly<Record<string, unknown>>;
}
