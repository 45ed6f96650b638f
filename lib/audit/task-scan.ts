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

type ScannedTask = Row<typeof TASK_COLUMNS> & { readonly command: string };

/**
 * The tasks on some CPUs, for the grants that have these CPUs: each asks for its own, so that many
 * grants do not look through all of them.
 */
export class TaskScan {
  readonly seesAll: boolean;
  readonly #tasks: ReadonlyMap<number, readonly ScannedTask[]>;
  readonly #confined: ReadonlySet<number>;
  readonly #parents: ReadonlyMap<number, number>;
  readonly #children: ReadonlyMap<number, readonly number[]>;

  constructor({ rows, commands, parents, seesAll }: NativeTasks) {
    this.seesAll = seesAll;
    const tasks = rowsOf(TASK_COLUMNS, rows).map((row, i) => ({ ...row, command: commands[i]! }));
    const pairs = Array.from(
      { length: parents.length / 2 },
      (_, i) => [parents[2 * i]!, parents[2 * i + 1]!] as const,
    );
    this.#tasks = groupsOf(tasks.map((task) => [task.processor, task]));
    this.#confined = new Set(tasks.filter(({ isConfined }) => isConfined === 1).map(({ pid }) => pid));
    this.#parents = new Map(pairs);
    this.#children = groupsOf(pairs.map(([pid, parent]) => [parent, pid]));
  }

  /** Those whose last CPU is one of these. */
  on(cpus: CpuSet): ScannedTask[] {
    return [...cpus].flatMap((cpu) => this.#tasks.get(cpu) ?? []);
  }

  /** Of the roots, and of what was started from them, the processes with tasks confined to the CPUs. */
  confinedBelow(roots: Iterable<number>): number[] {
    const found = new Set(roots);
    // What is added meanwhile comes later.
    for (const pid of found) for (const child of this.#children.get(pid) ?? []) found.add(child);
    return [...found].filter((pid) => this.#confined.has(pid));
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

function groupsOf<Value>(pairs: readonly (readonly [key: number, value: Value])[]): Map<number, Value[]> {
  const groups = new Map<number, Value[]>();
  for (const [key, value] of pairs) {
    const group = groups.get(key);
    if (group) group.push(value);
    else groups.set(key, [value]);
  }
  return groups;
}

export function scanTasks(cpus: CpuSet): TaskScan {
  return new TaskScan(native.scanTasks(cpus.words));
}
