// The kinds of cases, distinguished by their fields.
import type { Kind } from './case.js';
import { bitmask } from './kinds/bitmask.js';
import { checkpoint } from './kinds/checkpoint.js';
import { cpuHints } from './kinds/cpu-hints.js';
import { cpuTake } from './kinds/cpu-take.js';
import { cpuset } from './kinds/cpuset.js';
import { hintMerge } from './kinds/hint-merge.js';
import { scenario } from './kinds/scenario.js';

export const KINDS: readonly Kind[] = [cpuTake, cpuset, bitmask, hintMerge, cpuHints, scenario, checkpoint];
