// Draws the branches of a tree as text. Pure.
import type { CpuSet } from 'numalign';

/**
 * A line of the tree with its children. `cores`, the CPUs of each core, follow the label, wrapped.
 */
export interface Branch {
  readonly label: string;
  readonly cores?: readonly CpuSet[];
  readonly children?: readonly Branch[];
}

export type Painter = (cpu: number) => string;

/** The lines of branches below `prefix`, at most `width` wide. */
export function renderChildren(
  branches: readonly Branch[],
  prefix: string,
  width: number,
  paint: Painter,
): string[] {
  const leaves = branches.filter((branch) => branch.cores);
  const labelWidth = Math.max(0, ...leaves.map((leaf) => leaf.label.length));
  const cellWidth = Math.max(
    0,
    ...leaves.flatMap((leaf) => leaf.cores!.map((core) => [...core].join(',').length)),
  );
  return branches.flatMap((branch, i) => {
    const last = i === branches.length - 1;
    const [first, rest] = [`${prefix}${last ? '└─ ' : '├─ '}`, `${prefix}${last ? '   ' : '│  '}`];
    if (!branch.cores) {
      return [`${first}${branch.label}`, ...renderChildren(branch.children ?? [], rest, width, paint)];
    }
    const indent = labelWidth + 2;
    const perLine = Math.max(1, Math.floor((width - prefix.length - 3 - indent + 1) / (cellWidth + 1)));
    const lines = chunks(branch.cores, perLine).map((cores) => cells(cores, cellWidth, paint));
    return lines.map((line, n) =>
      n === 0 ? `${first}${branch.label.padEnd(indent)}${line}` : `${rest}${' '.repeat(indent)}${line}`,
    );
  });
}

function chunks<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) =>
    list.slice(i * size, (i + 1) * size),
  );
}

// Cores in columns, each as its CPUs joined by commas. Colours do not count for the padding.
function cells(cores: readonly CpuSet[], width: number, paint: Painter): string {
  return cores
    .map((core, i) => {
      const padding = i === cores.length - 1 ? 0 : width - [...core].join(',').length;
      return Array.from(core, paint).join(',') + ' '.repeat(padding);
    })
    .join(' ');
}
