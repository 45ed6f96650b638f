// Checks and freezes the consent of a request to be moved.
import type { MoveConsent } from '../../account/pod-assignment.js';
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { parseDuration } from '../values/duration.js';
import { isFrom1To, option } from '../values/option-values.js';

/** The terms on which a grant consents to a move, see {@link RequestOptions.movable}. */
export interface MovableOptions {
  /**
   * The greatest number of moves an hour, from 1.
   * @default no limit
   */
  readonly maxPerHour?: number;
  /**
   * How long the owner has to answer: milliseconds, or a duration such as `'10s'`. Without an
   * answer the grant stays where it is.
   * @default `'5s'`
   */
  readonly notice?: number | string;
  /**
   * NUMA nodes of the machine to which the grant never moves, such as `'1'`, `[0, 1]` or a NodeSet.
   * @default none
   */
  readonly exclude?: NodeSet | string | Iterable<number>;
}

const NOTICE_MS = 5_000;
const MOST_MOVES = 3_600;

/** The terms of `movable: true`, and of a pod's annotation. */
export const MOVABLE: MoveConsent = Object.freeze({
  maxPerHour: null,
  noticeMs: NOTICE_MS,
  exclude: NodeSet.EMPTY,
});

const VALID = 'true, false or { maxPerHour, notice, exclude }';
const MOVES = `a whole number of moves from 1 to ${MOST_MOVES}`;

/** undefined if the grant is never moved. @throws ERR_INVALID_OPTION */
export function parseMovable(value: unknown): MoveConsent | undefined {
  if (value === undefined || value === false) return undefined;
  if (value === true) return MOVABLE;
  if (typeof value !== 'object' || value === null) invalidOption('movable', value, VALID);
  const {
    maxPerHour,
    notice = NOTICE_MS,
    exclude = NodeSet.EMPTY,
  } = checkOptions(value, ['maxPerHour', 'notice', 'exclude'], 'movable');
  return Object.freeze({
    maxPerHour:
      maxPerHour === undefined
        ? null
        : option.that(maxPerHour, 'movable.maxPerHour', isFrom1To(MOST_MOVES), MOVES),
    noticeMs: Math.ceil(parseDuration('movable.notice', notice)),
    exclude: parseNodes(exclude),
  });
}

const isIterable = (value: unknown): value is Iterable<unknown> =>
  typeof value === 'object' && value !== null && Symbol.iterator in value;

function parseNodes(value: unknown): NodeSet {
  if (value instanceof NodeSet) return value;
  const valid = 'NUMA nodes: a NodeSet, a list such as "0-1,3", or their numbers';
  // CPU ids would pass for nodes.
  if (!(typeof value === 'string' || isIterable(value)) || value instanceof CpuSet)
    invalidOption('movable.exclude', value, valid);
  try {
    return typeof value === 'string' ? NodeSet.parse(value) : NodeSet.from(value as Iterable<number>);
  } catch {
    return invalidOption('movable.exclude', value, valid);
  }
}
