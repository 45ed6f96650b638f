// The kinds of cases, told apart by their fields. A kind without `run` is known, and not replayed yet.
import type { Case, Kind } from './case.js';
import { bitmask } from './kinds/bitmask.js';
import { cpuTake } from './kinds/cpu-take.js';
import { cpuset } from './kinds/cpuset.js';

const has = (vector: Case, ...fields: string[]) => fields.every((field) => field in vector);

export const KINDS: readonly Kind[] = [
  cpuTake,
  cpuset,
  bitmask,
  { name: 'hint-merge', matches: (vector) => has(vector, 'numaNodes', 'policy', 'providers') },
  { name: 'cpu-hints', matches: (vector) => has(vector, 'topology', 'available', 'request') },
  { name: 'scenario', matches: (vector) => has(vector, 'machine', 'config', 'steps') },
  { name: 'checkpoint', matches: (vector) => has(vector, 'kind', 'variant', 'policy', 'text') },
];
