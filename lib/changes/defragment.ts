// Defragment: moves grants that consent, so that one NUMA node has room for a larger request.
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { Host, ReadOnlyHost } from '../admission/host.js';
import { PERSISTENT_OWNER } from '../admission/placed-pod.js';
import { planningState } from '../admission/plan.js';
import { moveTime } from '../admission/transact.js';
import { checkOptions } from '../base/check-options.js';
import { native } from '../base/native.js';
import { inSlices } from '../base/steps.js';
import {
  type AskFor,
  afterMoves,
  alignedRequest,
  largerBy,
  largestByNode,
} from '../decision/changes/largest-request.js';
import { type Repacking, searchMoves } from '../decision/changes/repacking.js';
import { type ProposedMove, proposedMove, type UnmovedGrant } from '../decision/changes/repacking-report.js';
import { NEVER, type Question } from '../decision/question.js';
import type { Placement } from '../input/placement.js';
import { checkSignal } from '../input/requests/request.js';
import { option } from '../input/values/option-values.js';
import { AskedGrants } from './asked-grants.js';
import { giveBackRoom } from './move-grant.js';

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
  /** The id of the NUMA node. */
  readonly node: number;
  /** The largest number of exclusive CPUs that one request could have on it before the moves. */
  readonly before: number;
  /** The same number after the moves. */
  readonly after: number;
}

/** The answer of {@link Manager.defragment}. */
export interface Defragmentation {
  /** Whether the moves were only planned, as asked. */
  readonly dryRun: boolean;
  /** One entry for each NUMA node with CPUs, ascending. */
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

/** Has the moves made, or only notes them. */
interface MoveMaker {
  readonly unmoved: readonly UnmovedGrant[];
  mayMove(pod: PodAssignment): boolean;
  /** The moves that were made, and the state after them. */
  make(repacking: Repacking): Promise<readonly [moves: readonly ProposedMove[], state: Assignments]>;
}

function movesReally(host: Host, signal: AbortSignal | undefined): MoveMaker {
  const asked = new AskedGrants();
  const request = `defragment/${native.randomUuid()}`;
  return {
    get unmoved() {
      return asked.unmoved;
    },
    mayMove: (pod) => asked.mayAsk(pod),
    make: async (repacking) => {
      const moves: ProposedMove[] = [];
      try {
        for (const move of repacking.moves) {
          if (!(await asked.ask(host, move, { for: request, signal }))) break;
          moves.push(proposedMove(host.topology, move));
        }
      } finally {
        await giveBackRoom(host, request);
      }
      return [moves, planningState(host).state];
    },
  };
}

function onlyNotes({ topology }: ReadOnlyHost): MoveMaker {
  const moved = new Set<string>();
  return {
    unmoved: [],
    mayMove: ({ uid }) => !moved.has(uid),
    make: async (repacking) => {
      for (const { uid } of repacking.moves) moved.add(uid);
      return [repacking.moves.map((move) => proposedMove(topology, move)), afterMoves(repacking)];
    },
  };
}

/** @throws ERR_LOCK_TIMEOUT, ERR_STATE_*; the signal's reason */
export const defragment = (host: Host, placement: Placement, signal?: AbortSignal) =>
  inRounds(host, placement, { dryRun: false, signal }, movesReally(host, signal));

/** What {@link defragment} would do. It only reads. @throws ERR_STATE_*; the signal's reason */
export const planDefragmentation = (host: ReadOnlyHost, placement: Placement, signal?: AbortSignal) =>
  inRounds(host, placement, { dryRun: true, signal }, onlyNotes(host));

async function inRounds(
  host: ReadOnlyHost,
  placement: Placement,
  { dryRun, signal }: Defragmenting,
  maker: MoveMaker,
): Promise<Defragmentation> {
  const moves: ProposedMove[] = [];
  let isBounded = false;
  let { state } = planningState(host);
  const before = await inSlices(largestByNode(askerIn(host, placement, state)));
  for (let left = MOST_ROUNDS; left > 0; left--) {
    signal?.throwIfAborted();
    const askFor = askerIn(host, placement, state);
    const largest = Math.max(0, ...(await inSlices(largestByNode(askFor))).values());
    const search = largerBy(askFor, largest, (question) => {
      const answer = searchMoves(question, moveTime(), (pod) => maker.mayMove(pod));
      isBounded ||= answer.isBounded;
      return answer.isFound ? answer : undefined;
    });
    const better = await inSlices(search);
    if (!better) break;
    const [made, after] = await maker.make(better);
    moves.push(...made);
    state = after;
  }
  const after = await inSlices(largestByNode(askerIn(host, placement, state)));
  const nodes = Array.from(before, ([node, cpus]) => ({ node, before: cpus, after: after.get(node) ?? 0 }));
  return { dryRun, nodes, moves, unmoved: maker.unmoved, isBounded };
}

function askerIn(
  { topology, resources, providers }: ReadOnlyHost,
  placement: Placement,
  state: Assignments,
): AskFor {
  const uid = native.randomUuid();
  const base: Omit<Question, 'request'> = {
    topology,
    present: cpusNow(topology, state.pods),
    state,
    resources,
    providers: providers.list,
    owner: PERSISTENT_OWNER,
    uid,
    trialUid: uid,
    now: NEVER,
    dryRun: true,
  };
  return (cpus) => ({ ...base, request: alignedRequest(placement, cpus) });
}
