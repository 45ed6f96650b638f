// Checks and freezes the options of a resize.
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { parseRequests } from '../pods/resource-amounts.js';
import { option, parseCpuCount } from '../values/option-values.js';
import type { Quantity } from '../values/quantity.js';
import { checkSignal } from './request.js';

/** The options of {@link Grant.resize}. */
export interface ResizeOptions {
  /**
   * How many exclusive CPUs in all: a whole number from 1.
   * @default unchanged
   */
  cpu?: number;
  /**
   * How much memory in all.
   * @default unchanged
   */
  memory?: Quantity;
  /**
   * How long the record announces the resize before it happens, in milliseconds.
   * @default 20
   */
  noticeMs?: number;
  /**
   * Aborts the wait for the lock of the state, and a resize that is announced but has not begun.
   * @default none
   */
  signal?: AbortSignal;
}

/** The amounts of a grant after a resize. */
export interface ResizeRequest {
  readonly cpu: number | undefined;
  /** Bytes. */
  readonly memory: number | undefined;
  readonly noticeMs: number;
  readonly signal: AbortSignal | undefined;
}

const NOTICE_MS = 20;
const MOST_NOTICE_MS = 60_000;

/** @throws ERR_INVALID_OPTION, ERR_INVALID_QUANTITY */
export function parseResize(options: ResizeOptions): ResizeRequest {
  const {
    cpu,
    memory,
    noticeMs = NOTICE_MS,
    signal,
  } = checkOptions(options, ['cpu', 'memory', 'noticeMs', 'signal'], 'resize');
  if (cpu === undefined && memory === undefined) invalidOption('cpu', cpu, 'given, or memory, or both');
  return Object.freeze({
    cpu: cpu === undefined ? undefined : parseCpuCount(cpu, 'cpu'),
    memory: memory === undefined ? undefined : parseRequests({ memory }, 'resize', invalidOption).memory,
    noticeMs: option.within(noticeMs, 'noticeMs', MOST_NOTICE_MS, 'a number of milliseconds'),
    signal: checkSignal(signal),
  });
}
