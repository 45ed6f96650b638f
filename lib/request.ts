// Requests as callers give them -> checked, frozen requests.
import { checkOptions, invalidOption } from './check-options.js';
import { type CpuManagerPolicyOptions, type Placement, parsePlacement } from './config.js';
import { CpuSet } from './cpu-set.js';

/** What {@link Manager.acquire} takes: a Guaranteed pod of one container. */
export interface AcquireOptions {
  /** How many exclusive CPUs: a whole number of at least 1. */
  cpu: number;
  /** For people; default: the grant's id. */
  name?: string;
  /** `process` (default): the grant ends with this process or Worker. `persistent`: it stays until released by its id. */
  owner?: 'process' | 'persistent';
  /** Placement of this grant; options left out are the manager's. */
  cpuManagerPolicyOptions?: CpuManagerPolicyOptions;
  /** Gives up waiting for the state's lock. */
  signal?: AbortSignal;
}

export interface AcquireRequest {
  readonly cpu: number;
  readonly name: string | undefined;
  readonly owner: 'process' | 'persistent';
  readonly placement: Placement;
}

const ACQUIRE_OPTIONS = ['cpu', 'name', 'owner', 'cpuManagerPolicyOptions', 'signal'] as const;
const MAX_NAME_LENGTH = 253; // as for Kubernetes' names

/** @throws ERR_INVALID_OPTION */
export function parseAcquire(options: AcquireOptions, placement: Placement): AcquireRequest {
  const {
    cpu,
    name,
    owner = 'process',
    cpuManagerPolicyOptions,
    signal,
  } = checkOptions(options, ACQUIRE_OPTIONS, 'acquire');
  if (typeof cpu !== 'number' || !Number.isInteger(cpu) || cpu < 1 || cpu > CpuSet.MAX_ID) {
    invalidOption('cpu', cpu, 'a whole number of CPUs, at least 1 (a part of a CPU cannot be exclusive)');
  }
  // Names are printed: control characters would let one line look like another.
  if (name !== undefined && (typeof name !== 'string' || !/^[^\p{C}]+$/u.test(name) || name.length > MAX_NAME_LENGTH)) {
    invalidOption('name', name, `a text of 1 to ${MAX_NAME_LENGTH} printable characters`);
  }
  if (owner !== 'process' && owner !== 'persistent') invalidOption('owner', owner, "'process' or 'persistent'");
  if (signal !== undefined && !(signal instanceof AbortSignal)) invalidOption('signal', signal, 'an AbortSignal');
  return Object.freeze({ cpu, name, owner, placement: parsePlacement(cpuManagerPolicyOptions, placement) });
}
