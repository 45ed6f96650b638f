// The kinds of cases, told apart by their fields. A kind without `run` is known, and not replayed yet.
import type { Case, Kind } from './case.js';
import { bitmask } from './kinds/bitmask.js';
import { cpuHints } from './kinds/cpu-hints.js';
import { cpuTake } from './kinds/cpu-take.js';
import { cpuset } from './kinds/cpuset.js';
import { hintMerge } from './kinds/hint-merge.js';
import { scenario } from './kinds/scenario.js';

const has = (vector: Case, ...fields: string[]) => fields.every((field) => field in vector);

export const KINDS: readonly Kind[] = [
  cpuTake,
  cpuset,
  bitmask,
  hintMerge,
  cpuHints,
  scenario,
  { name: 'checkpoint', matches: (vector) => has(vector, 'kind', 'variant', 'policy', 'text') },
];
