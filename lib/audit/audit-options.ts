// AuditOptions: what an audit looks at, checked.
import { checkOptions, invalidOption } from '../base/check-options.js';

/** What {@link Grant.audit} looks at, and since when. */
export interface AuditOptions {
  /** Begins anew: all counters are 0 now, and count from here. Default false. */
  reset?: boolean;
  /**
   * Also which tasks of others are on the CPUs, for which every process that /proc shows is looked
   * at. Default true.
   */
  foreign?: boolean;
  /**
   * Also interrupts. On a machine with many CPUs the kernel takes milliseconds to write out their
   * table. Default true.
   */
  interrupts?: boolean;
  /** Also where the memory is, which takes time in proportion to it. Default false. */
  memory?: boolean;
}

export function checkAudit(options: AuditOptions): AuditOptions {
  const names = ['reset', 'foreign', 'interrupts', 'memory'] as const;
  const given = checkOptions(options, names, 'audit') as AuditOptions;
  for (const name of names) {
    const value: unknown = given[name];
    if (value !== undefined && typeof value !== 'boolean') invalidOption(name, value, 'true or false');
  }
  return given;
}
