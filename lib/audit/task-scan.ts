// TaskScan: which tasks have run on which CPUs, according to /proc.
import { native } from '../base/native.js';
import { type NativeTasks, TASK_COLUMNS } from '../base/native-tables.js';
import type { CpuSet } from '../machine/cpu-set.js';

type Row<Columns extends readonly string[]> = Readonly<Record<Columns[number], number>>;

export function rowsIn<const Columns extends readonly string[]>(
  columns: Columns,
  values: Float64Array,
): Row<Columns>[] {
  const rows: Row<Columns>[] = [];
  for (let at = 0; at < values.length; ) {
    // Object.fromEntries would be ten times as slow.
    const row: Record<string, number> = {};
    for (const column of columns) row[column] = values[at++]!;
    rows.push(row as Row<Columns>);
  }
  return rows;
}

export const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value);

type ScannedTask = Row<typeof TASK_COLUMNS> & { readonly command: string };

/**
 * The tasks on some CPUs, shared by the grants that have these CPUs. Each grant asks for its own
 * CPUs, so that many grants do not search through all tasks.
 */
export class TaskScan {
  readonly seesAll: boolean;
  readonly #tasks: ReadonlyMap<number, readonly ScannedTask[]>;
  readonly #confinedPids: ReadonlySet<number>;
  readonly #children: ReadonlyMap<number, readonly number[]>;

  constructor({ rows, commands, parents, seesAll }: NativeTasks) {
    this.seesAll = seesAll;
    const tasks = rowsIn(TASK_COLUMNS, rows).map((row, i) => ({ ...row, command: commands[i]! }));
    const pairs = Array.from(
      { length: parents.length / 2 },
      (_, i) => [parents[2 * i]!, parents[2 * i + 1]!] as const,
    );
    this.#tasks = groupsOf(tasks.map((task) => [task.processor, task]));
    this.#confinedPids = new Set(tasks.filter(({ isConfined }) => isConfined === 1).map(({ pid }) => pid));
    this.#children = groupsOf(pairs.map(([pid, parent]) => [parent, pid]));
  }

  /** The tasks whose last CPU is one of these. */
  on(cpus: CpuSet): ScannedTask[] {
    return [...cpus].flatMap((cpu) => this.#tasks.get(cpu) ?? []);
  }

  /** The roots and all their descendants. A child whose parent has ended is not found. */
  below(roots: Iterable<number>): ReadonlySet<number> {
    const found = new Set(roots);
    // The loop also visits what it adds.
    for (const pid of found) for (const child of this.#children.get(pid) ?? []) found.add(child);
    return found;
  }

  /** Whether a process has tasks that are confined to the scanned CPUs. */
  isConfined(process: number): boolean {
    return this.#confinedPids.has(process);
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
