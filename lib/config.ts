// Options as callers give them -> frozen Config. All public validation of options lives here and in request.ts.
import { resolve } from 'node:path';
import { checkOptions, invalidOption } from './check-options.js';
import { CpuSet } from './cpu-set.js';
import { NumalignError } from './errors.js';
import { Topology } from './topology.js';

/** The state folder of the whole machine. Any other makes a manager private. */
export const MACHINE_STATE_DIR = '/run/numalign';

/** Placement options of the CPU Manager, spelled as the kubelet spells them; at most one of them. Values may be booleans or their text. */
export interface CpuManagerPolicyOptions {
  /** Single threads from all over the package instead of whole cores. */
  'distribute-cpus-across-cores'?: boolean | 'true' | 'false';
  /** Balanced over the fewest NUMA nodes that fit, instead of packed. */
  'distribute-cpus-across-numa'?: boolean | 'true' | 'false';
  /** Whole L3 groups where the request is that large, else the fewest of them. */
  'prefer-align-cpus-by-uncorecache'?: boolean | 'true' | 'false';
}

/** What a machine's users agree on: recorded with the state by the first opener, compared by every later one. */
export interface MachineOptions {
  /** The CPUs that numalign hands out or shares; null (the default at first): all online CPUs. */
  managedCPUs?: CpuSet | string | null;
  /** CPUs that are never exclusive; they stay in the shared pool unless `strictCPUReservation`. Default: none. */
  reservedSystemCPUs?: CpuSet | string;
  /** Keep the reserved CPUs out of the shared pool too (the kubelet's strict-cpu-reservation). Default: false. */
  strictCPUReservation?: boolean;
}

/** Options of {@link openManager}. */
export interface ManagerOptions extends MachineOptions {
  /** Default: /run/numalign. With another folder the manager is private and speaks only for those who share that folder. */
  stateDir?: string;
  /** The machine; default: this one, discovered anew. A simulated one needs a `stateDir` of its own. */
  topology?: Topology;
  /** Placement of grants that do not say otherwise. */
  cpuManagerPolicyOptions?: CpuManagerPolicyOptions;
  /** How long to wait for the state's lock, in milliseconds. Default: 10,000. */
  lockTimeoutMs?: number;
}

/** Placement options with their defaults filled in. */
export interface Placement {
  readonly distributeAcrossCores: boolean;
  readonly distributeAcrossNuma: boolean;
  readonly preferAlignByUncoreCache: boolean;
}

/** Machine settings that an opener insists on; undefined where it takes what is recorded. */
export interface RequiredSettings {
  readonly managedCPUs: CpuSet | null | undefined;
  readonly reservedSystemCPUs: CpuSet | undefined;
  readonly strictCPUReservation: boolean | undefined;
}

export interface Config {
  readonly stateDir: string;
  readonly topology: Topology | undefined;
  readonly settings: RequiredSettings;
  readonly placement: Placement;
  readonly lockTimeoutMs: number;
}

const PLACEMENT_OPTIONS = {
  'distribute-cpus-across-cores': 'distributeAcrossCores',
  'distribute-cpus-across-numa': 'distributeAcrossNuma',
  'prefer-align-cpus-by-uncorecache': 'preferAlignByUncoreCache',
} as const satisfies Record<keyof CpuManagerPolicyOptions, keyof Placement>;

const DEFAULT_PLACEMENT: Placement = Object.freeze({
  distributeAcrossCores: false,
  distributeAcrossNuma: false,
  preferAlignByUncoreCache: false,
});

const MACHINE_OPTIONS = ['managedCPUs', 'reservedSystemCPUs', 'strictCPUReservation'] as const;
const MANAGER_OPTIONS = [
  ...MACHINE_OPTIONS,
  'stateDir',
  'topology',
  'cpuManagerPolicyOptions',
  'lockTimeoutMs',
] as const;

function parseCpus(name: string, value: unknown): CpuSet | undefined {
  if (value === undefined || value instanceof CpuSet) return value;
  if (typeof value !== 'string') invalidOption(name, value, 'a CpuSet or a list such as "0-3,8"');
  return CpuSet.parse(value);
}

function parseBoolean(name: string, value: unknown): boolean | undefined {
  if (value === undefined || typeof value === 'boolean') return value;
  return invalidOption(name, value, 'true or false');
}

/** Placement options over `defaults`. @throws ERR_INVALID_OPTION for unknown names, wrong values and options that exclude each other. */
export function parsePlacement(options: unknown, defaults: Placement = DEFAULT_PLACEMENT): Placement {
  if (options === undefined) return defaults;
  const given = checkOptions(options, Object.keys(PLACEMENT_OPTIONS), 'cpuManagerPolicyOptions');
  const placement = { ...defaults };
  for (const [name, field] of Object.entries(PLACEMENT_OPTIONS)) {
    const value = given[name];
    if (value === undefined) continue;
    if (value !== true && value !== false && value !== 'true' && value !== 'false')
      invalidOption(name, value, 'true or false');
    placement[field] = value === true || value === 'true';
  }
  // As the kubelet refuses them.
  const chosen = Object.entries(PLACEMENT_OPTIONS).filter(([, field]) => placement[field]);
  if (chosen.length > 1) {
    const names = chosen.map(([name]) => name);
    throw new NumalignError('ERR_INVALID_OPTION', `${names.join(' and ')} exclude each other: set one of them`, {
      value: names,
      valid: 'at most one of the three',
    });
  }
  return Object.freeze(placement);
}

/** The machine settings among `options`. @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseSettings(options: Record<string, unknown>): RequiredSettings {
  return Object.freeze({
    managedCPUs: options.managedCPUs === null ? null : parseCpus('managedCPUs', options.managedCPUs),
    reservedSystemCPUs: parseCpus('reservedSystemCPUs', options.reservedSystemCPUs),
    strictCPUReservation: parseBoolean('strictCPUReservation', options.strictCPUReservation),
  });
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseMachineOptions(options: unknown): RequiredSettings {
  return parseSettings(checkOptions(options, MACHINE_OPTIONS, 'the machine settings'));
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseConfig(options: ManagerOptions): Config {
  const given = checkOptions(options, MANAGER_OPTIONS, 'openManager');
  const { stateDir = MACHINE_STATE_DIR, topology, lockTimeoutMs = 10_000 } = given;
  if (typeof stateDir !== 'string' || !stateDir.startsWith('/') || stateDir.includes('\0')) {
    invalidOption('stateDir', stateDir, 'an absolute path');
  }
  if (topology !== undefined && !(topology instanceof Topology)) {
    invalidOption('topology', topology, 'a Topology, as discover() gives it');
  }
  if (typeof lockTimeoutMs !== 'number' || !(lockTimeoutMs >= 0 && lockTimeoutMs <= 2 ** 31 - 1)) {
    invalidOption('lockTimeoutMs', lockTimeoutMs, 'a number of milliseconds from 0 to 2147483647');
  }
  return Object.freeze({
    stateDir: resolve(stateDir),
    topology,
    settings: parseSettings(given),
    placement: parsePlacement(given.cpuManagerPolicyOptions),
    lockTimeoutMs,
  });
}
