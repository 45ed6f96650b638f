// All parts of quiet, in the order in which their settings are written.
import type { Part } from '../kernel/setting.js';

export const PARTS: readonly Part[] = [];
