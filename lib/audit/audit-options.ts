// AuditOptions: what an audit covers, checked.
import { checkOptions, invalidOption } from '../base/check-options.js';

/** The options of {@link Grant.audit} and {@link Manager.audit}. */
export interface AuditOptions {
  /**
   * Resets all counters to 0 first.
   * @default `false`
   */
  reset?: boolean;
  /**
   * Finds the tasks of other processes on the CPUs. It looks at every process that /proc shows.
   * @default `true`
   */
  foreign?: boolean;
  /**
   * Counts interrupts. On a machine with many CPUs the kernel takes milliseconds to write the table.
   * @default `true`
   */
  interrupts?: boolean;
  /**
   * Finds the NUMA nodes of the memory. The time grows with the amount of memory.
   * @default `false`
   */
  memory?: boolean;
}

export function checkAudit(options: AuditOptions): AuditOptions {
  const names = ['reset', 'foreign', 'interrupts', 'memory'] as const;
  const fields = checkOptions(options, names, 'audit') as AuditOptions;
  for (const name of names) {
    const value: unknown = fields[name];
    if (value !== undefined && typeof value !== 'boolean') invalidOption(name, value, 'true or false');
  }
  return fields;
}
