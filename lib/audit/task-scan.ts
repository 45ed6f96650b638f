// TaskScan: which tasks have run where, as /proc tells.
import { native } from '../base/native.js';
import { type NativeTasks, TASK_COLUMNS } from '../base/native-tables.js';
import type { CpuSet } from '../machine/cpu-set.js';

type Row<Columns extends readonly string[]> = Readonly<Record<Columns[number], number>>;

export function rowsOf<const Columns extends readonly string[]>(
  columns: Columns,
  values: Float64Array,
): Row<Columns>[] {
  const rows: Row<Columns>[] = [];
  for (let at = 0; at < values.length; ) {
    // Not by Object.fromEntries, which is ten times as slow.
    const row: Record<string, number> = {};
    for (const column of columns) row[column] = values[at++]!;
    rows.push(row as Row<Columns>);
  }
  return rows;
}

export const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value);

/** The tasks on some CPUs, for the grants that have these CPUs. */
export class TaskScan {
  readonly seesAll: boolean;
  readonly tasks: readonly (Row<typeof TASK_COLUMNS> & { readonly command: string })[];
  readonly #parents: ReadonlyMap<number, number>;

  constructor({ rows, commands, parents, seesAll }: NativeTasks) {
    this.seesAll = seesAll;
    this.tasks = rowsOf(TASK_COLUMNS, rows).map((row, i) => ({ ...row, command: commands[i]! }));
    this.#parents = new Map(
      Array.from({ length: parents.length / 2 }, (_, i) => [parents[2 * i]!, parents[2 * i + 1]!] as const),
    );
  }

  /**
   * Whether a process is one of the roots, or was started from one. A child whose parent has ended
   * belongs to nobody.
   */
  isBelow(process: number, roots: ReadonlySet<number>): boolean {
    for (let pid: number | undefined = process; pid !== undefined && pid > 0; pid = this.#parents.get(pid)) {
      if (roots.has(pid)) return true;
    }
    return false;
  }
}

export function scanTasks(cpus: CpuSet): TaskScan {
  return new TaskScan(native.scanTasks(cpus.words));
}
