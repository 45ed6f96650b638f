// Defragment: moves grants that consent, so that one NUMA node has room for a larger request.
import { randomUUID } from 'node:crypto';
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import { PERSISTENT_OWNER } from '../admission/placed-pod.js';
import { planningGround } from '../admission/planning/planning-ground.js';
import type { Site } from '../admission/site.js';
import { moveTime } from '../admission/transact.js';
import { checkOptions } from '../base/check-options.js';
import { NEVER, type Question } from '../decision/question.js';
import {
  type AskFor,
  afterMoves,
  alignedRequest,
  largerBy,
  largestByNode,
} from '../decision/repacking/largest-request.js';
import {
  type ProposedMove,
  proposedMove,
  type UnmovedGrant,
} from '../decision/repacking/repacking-report.js';
import { searchMoves } from '../decision/repacking/search.js';
import type { Placement } from '../input/placement.js';
import { checkSignal } from '../input/request.js';
import { option } from '../input/values/option-values.js';
import { giveBackRoom } from '../moves/kept-room.js';
import { AskedGrants } from './asked-grants.js';

/** The options of {@link Manager.defragment}. */
export interface DefragmentOptions {
  /**
   * Only reports what would move.
   * @default `false`
   */
  dryRun?: boolean;
  /**
   * Ends the defragmentation between two moves, and calls off moves that have not begun.
   * @default none
   */
  signal?: AbortSignal;
}

/** The number of CPUs of a NUMA node that one request can have, before and after the moves. */
export interface NodeGain {
  readonly node: number;
  readonly before: number;
  readonly after: number;
}

/** The answer of {@link Manager.defragment}. */
export interface Defragmentation {
  readonly dryRun: boolean;
  readonly nodes: readonly NodeGain[];
  /** The moves made, in their order; with `dryRun` those that would be made. */
  readonly moves: readonly ProposedMove[];
  /** The grants that were asked to move, and did not. */
  readonly unmoved: readonly UnmovedGrant[];
  /** True if not all moves were tried: there may be better ones. */
  readonly isBounded: boolean;
}

export interface Defragmenting {
  readonly dryRun: boolean;
  readonly signal: AbortSignal | undefined;
}

/** @throws ERR_INVALID_OPTION */
export function parseDefragment(options: DefragmentOptions): Defragmenting {
  const { dryRun = false, signal } = checkOptions(options, ['dryRun', 'signal'], 'defragment');
  return { dryRun: option.flag(dryRun, 'dryRun'), signal: checkSignal(signal) };
}

// Each round makes the largest request larger, or finds a grant that does not move.
const MOST_ROUNDS = 32;

/** @throws ERR_LOCK_TIMEOUT, ERR_STATE_*; the signal's reason */
export async function defragment(
  site: Site,
  placement: Placement,
  { dryRun, signal }: Defragmenting,
): Promise<Defragmentation> {
  const asked = new AskedGrants();
  const moves: ProposedMove[] = [];
  const moved = new Set<string>();
  const request = `defragment/${randomUUID()}`;
  let isBounded = false;
  let { state } = planningGround(site);
  const before = largestByNode(askerIn(site, placement, state));
  for (let left = MOST_ROUNDS; left > 0; left--) {
    signal?.throwIfAborted();
    const askFor = askerIn(site, placement, state);
    const largest = Math.max(0, ...largestByNode(askFor).values());
    const better = largerBy(askFor, largest, (question) => {
      const answer = searchMoves(question, moveTime(), (pod) => asked.isOpen(pod) && !moved.has(pod.uid));
      isBounded ||= answer.isBounded;
      return answer.isFound ? answer : undefined;
    });
    if (!better) break;
    try {
      for (const move of better.moves) {
        if (!dryRun && !(await asked.ask(site, move, { for: request, signal }))) break;
        moved.add(move.uid);
        moves.push(proposedMove(site.topology, move));
      }
    } finally {
      await giveBackRoom(site, request);
    }
    state = dryRun ? afterMoves(better) : planningGround(site).state;
  }
  const after = largestByNode(askerIn(site, placement, state));
  const nodes = Array.from(before, ([node, cpus]) => ({ node, before: cpus, after: after.get(node) ?? 0 }));
  return { dryRun, nodes, moves, unmoved: asked.unmoved, isBounded };
}

function askerIn({ topology, resources, providers }: Site, placement: Placement, state: Assignments): AskFor {
  const uid = randomUUID();
  const base: Omit<Question, 'request'> = {
    ...{ topology, present: cpusNow(topology, state.pods), state, resources, providers: providers.list },
    ...{ owner: PERSISTENT_OWNER, uid, trialUid: uid, now: NEVER, dryRun: true },
  };
  return (cpus) => ({ ...base, request: alignedRequest(placement, cpus) });
}
