// The parts of quiet, in the order in which they are set.
import type { Part } from '../kernel/setting.js';
import { cache } from './cache.js';
import { frequency } from './frequency.js';
import { idle } from './idle.js';
import { interrupts } from './interrupts.js';
import { packets } from './packets.js';
import { workqueues } from './workqueues.js';

export const PARTS: readonly Part[] = [interrupts, workqueues, packets, idle, frequency, cache];
