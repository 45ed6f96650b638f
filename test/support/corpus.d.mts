import type { MachineJson } from '../../lib/entries/topology.js';

export interface CorpusPlan {
  readonly cpus: number;
  /** False: on the machine with one thread a core. */
  readonly smt?: boolean;
  readonly options?: Readonly<Record<string, unknown>>;
  /** What an experienced engineer would give. */
  readonly want: string;
  readonly why: string;
  /** What numalign gives instead, and why that is right too. */
  readonly gets?: string;
  readonly because?: string;
}

export interface CorpusMachine {
  readonly file: string;
  readonly name: string;
  readonly facts: readonly string[];
  readonly reserved: string;
  readonly plans: readonly CorpusPlan[];
}

export function corpus(): CorpusMachine[];
export function machineJson(machine: CorpusMachine): MachineJson;
export function captured(): { readonly name: string; readonly machine: MachineJson }[];
