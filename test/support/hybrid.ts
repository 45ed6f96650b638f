// Machines with several kinds of cores.
import { discover, type MachineJson, type Topology } from '../../lib/entries/topology.js';

/** Cores of one kind. More `kind` is faster. */
export interface CoreRow {
  readonly kind: number;
  readonly cores: number;
  readonly threads: number;
  /** @default 0 */
  readonly node?: number;
}

export function hybridJson(rows: readonly CoreRow[]): MachineJson {
  const cpus: number[][] = [];
  for (const { kind, cores, threads, node = 0 } of rows) {
    for (let i = 0; i < cores; i++) {
      const core = cpus.length;
      for (let thread = 0; thread < threads; thread++) cpus.push([cpus.length, core, node, node, kind]);
    }
  }
  const nodes = [...new Set(rows.map(({ node = 0 }) => node))].sort();
  return {
    columns: ['cpu', 'core', 'socket', 'numa', 'coreKind'],
    cpus,
    nodes: nodes.map((id) => ({ id, cpuLess: false, distances: null, memory: 2 ** 34 })),
  } as unknown as MachineJson;
}

export const hybridMachine = (rows: readonly CoreRow[]): Promise<Topology> =>
  discover({ json: hybridJson(rows) });

/** Eight P-cores of two threads (CPUs 0 to 15) and twelve E-cores (16 to 27). */
export const P8_E12: readonly CoreRow[] = [
  { kind: 1, cores: 8, threads: 2 },
  { kind: 0, cores: 12, threads: 1 },
];

/** Six P-cores of two threads (0 to 11), eight E-cores (12 to 19), two low-power E-cores (20, 21). */
export const THREE_KINDS: readonly CoreRow[] = [
  { kind: 2, cores: 6, threads: 2 },
  { kind: 1, cores: 8, threads: 1 },
  { kind: 0, cores: 2, threads: 1 },
];
