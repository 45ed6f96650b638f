// AuditOptions: what an audit covers, checked.
import { checkOptions, invalidOption } from '../base/check-options.js';

/** What {@link Grant.audit} covers, and since when. */
export interface AuditOptions {
  /** Begins again: all counters are 0 now, and count from here. Default: false. */
  reset?: boolean;
  /**
   * Also report which other tasks are on the CPUs. This looks at every process that /proc shows.
   * Default: true.
   */
  foreign?: boolean;
  /**
   * Also count interrupts. On a machine with many CPUs the kernel takes milliseconds to print their
   * table. Default: true.
   */
  interrupts?: boolean;
  /** Also report where the memory is, which takes time in proportion to it. Default: false. */
  memory?: boolean;
}

export function checkAudit(options: AuditOptions): AuditOptions {
  const names = ['reset', 'foreign', 'interrupts', 'memory'] as const;
  const checked = checkOptions(options, names, 'audit') as AuditOptions;
  for (const name of names) {
    const value: unknown = checked[name];
    if (value !== undefined && typeof value !== 'boolean') invalidOption(name, value, 'true or false');
  }
  return checked;
}
