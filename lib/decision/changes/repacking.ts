// Repacking: finds the fewest moves of consenting grants after which a rejected request is
// admitted. The core proposes moves by counts; a full decision checks each proposal. Pure.
import { isDeepStrictEqual } from 'node:util';
import type { Assignments } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { type CpuPool, isSettled, memoryOf, presentCpus } from '../../account/pod-holdings.js';
import { podsThat } from '../../account/pod-list-changes.js';
import { sharedPool } from '../../account/pools.js';
import { native } from '../../base/native.js';
import type { RepackingTables } from '../../base/native-tables.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { cpusOfChoice } from '../cpus/core-kinds.js';
import { cpuCount } from '../cpus/cpu-choices.js';
import { type Decision, decideWhether, POOLS } from '../decision.js';
import { begin } from '../progress.js';
import { type Question, underSettings } from '../question.js';
import { type MovableGrant, movableGrant } from './movable-grant.js';
import { type Move, moveOf, type StateAfterMove } from './move.js';
import { type MoveTime, recentMoves } from './move-steps.js';
import { nodesToTry } from './nodes-to-try.js';
import { problemTables } from './problem-tables.js';
import { requestParts } from './request-parts.js';

/** The limits of a search. */
export interface RepackLimits {
  /** With more than two moves, the core's search is bounded. */
  readonly maxMoves: number;
  /** The most proposals to decide. */
  readonly budget: number;
}

export interface Repacking {
  readonly isFound: true;
  /** In the order in which they are made; empty if the request is admitted without moves. */
  readonly moves: readonly Move[];
  /** The pod of the request, as admitted after the moves. */
  readonly pod: PodAssignment;
  /** The state after the moves, with the pod; computed on demand. */
  readonly next: () => Assignments;
  /** Bytes of memory that migrate. */
  readonly bytes: number;
  /** The number of CPUs that the moving grants give up, including held siblings. */
  readonly cpus: number;
  /** True if the search was cut short: there may be a better repacking. */
  readonly isBounded: boolean;
}

export interface NoRepacking {
  readonly isFound: false;
  /**
   * `sum`: too little is free in all. `place`: no NUMA nodes would do whatever moves, because
   * devices stay. `grants`: no grant that may move makes room. `unknown`: custom hint providers
   * cannot be tried, and a resize gets no room by moves.
   */
  readonly reason: 'sum' | 'place' | 'grants' | 'unknown';
  /** True if the search was cut short: there may be a repacking. */
  readonly isBounded: boolean;
}

// The number of proposals that the core returns at once. It doubles with each call.
const FEWEST_AT_ONCE = 8;
const MOST_AT_ONCE = 512;
// The core's search steps that take as long as one decision.
const STEPS_OF_A_DECISION = 200;
// The cost of a proposal whose first move has failed before, in decisions.
const COST_OF_IMPOSSIBLE = 1 / 64;

const uidsOf = ({ moves }: Repacking) =>
  moves
    .map(({ uid }) => uid)
    .sort()
    .join();

const keyOf = (grant: number, target: number) => `${grant} ${target}`;

/**
 * The best repacking for a request: the fewest moves, then the fewest bytes of memory, then the
 * fewest CPUs, then the lowest uids. Each moving grant needs its new place beside its old one,
 * keeps the policy of its admission, and stays near its devices, which do not move. `movable`: the
 * grants that may move now.
 */
export function repack(
  request: Question,
  movable: readonly PodAssignment[],
  limits: RepackLimits,
): Repacking | NoRepacking {
  if (request.providers.length > 0 || request.resized) return none('unknown');
  const question = underSettings(request);
  const atOnce = decideWhether(question);
  if (atOnce) return repackingOf(atOnce, [], false);
  const grants = movable
    .map((pod) => movableGrant(question, pod))
    .filter((grant) => grant !== undefined)
    .sort((a, b) => (a.pod.uid < b.pod.uid ? -1 : 1));
  const problems = POOLS[question.request.placement.isolation].map((pool) =>
    problemIn(question, pool, grants),
  );
  const tables = problems.filter((problem) => typeof problem !== 'string');
  if (tables.length === 0) return none(problems.includes('place') ? 'place' : 'sum');
  return new Search(question, grants, tables, limits).run();
}

const none = (reason: NoRepacking['reason'], isBounded = false): NoRepacking => ({
  isFound: false,
  reason,
  isBounded,
});

function repackingOf({ pod, next }: Decision, moves: readonly Move[], isBounded: boolean): Repacking {
  const { bytes, cpus } = costOf(moves);
  return { isFound: true, moves, pod, next, bytes, cpus, isBounded };
}

interface Cost {
  readonly bytes: number;
  readonly cpus: number;
}

function costOf(moves: readonly Move[]): Cost {
  const memoryMoved = ({ before, after }: Move) =>
    isDeepStrictEqual(memoryOf(before), memoryOf(after)) ? [] : memoryOf(before);
  return {
    bytes: moves.flatMap(memoryMoved).reduce((sum, { bytes }) => sum + bytes, 0),
    cpus: moves.reduce((sum, { before }) => sum + presentCpus(before).size, 0),
  };
}

/** The problem of a request that takes its CPUs from one pool, or why moves cannot help there. */
function problemIn(
  question: Question,
  pool: CpuPool,
  grants: readonly MovableGrant[],
): RepackingTables | 'sum' | 'place' {
  const within = cpusOfChoice(question.topology, question.request.placement.coreKind);
  const { draft } = begin({ ...question, within }, pool);
  const parts = requestParts(draft);
  if (!parts) return 'place';
  // Moves change the number of free CPUs only if grants hold siblings, which may be fewer
  // elsewhere, or if the request may use only some of the machine's CPUs. Grants stay on their kinds.
  const usable = within ?? question.topology.cpus;
  const isBeside = (cpus: CpuSet) => cpus.isSubsetOf(usable) || !cpus.intersects(usable);
  const isCountFixed =
    grants.every(({ placement, pod }) => !placement.holdSiblings && isBeside(presentCpus(pod))) &&
    usable.isSubsetOf(draft.allowed);
  const count = cpuCount(draft, undefined);
  const isPoolLeft = pool === 'isolated' || count < sharedPool(question.state, question.present).size;
  if (isCountFixed && count > 0 && (count > draft.free.size || !isPoolLeft)) return 'sum';
  return problemTables(question, draft, parts, grants);
}

class Search {
  // Results of first moves, which many proposals share; null if the move is impossible.
  readonly #firstMoves = new Map<string, StateAfterMove | null>();
  #budget: number;
  #isBounded: boolean;

  constructor(
    private readonly question: Question,
    private readonly grants: readonly MovableGrant[],
    private readonly problems: readonly RepackingTables[],
    private readonly limits: RepackLimits,
  ) {
    this.#budget = limits.budget;
    this.#isBounded = !nodesToTry(question.topology).isComplete;
  }

  run(): Repacking | NoRepacking {
    for (let count = 1; count <= this.limits.maxMoves; count++) {
      if (this.#budget <= 0) return none('grants', true);
      const all = this.problems
        .map((problem) => this.#best(problem, count))
        .filter((each) => each !== undefined);
      const [best] = all.sort(
        (a, b) => a.bytes - b.bytes || a.cpus - b.cpus || (uidsOf(a) < uidsOf(b) ? -1 : 1),
      );
      if (best) return { ...best, isBounded: this.#isBounded };
    }
    return none('grants', this.#isBounded);
  }

  #best(problem: RepackingTables, moves: number): Repacking | undefined {
    const budget = this.limits.budget * STEPS_OF_A_DECISION;
    let skip = 0;
    for (let most = FEWEST_AT_ONCE; ; most = Math.min(2 * most, MOST_AT_ONCE)) {
      const words = native.findRepackings(problem, { moves, skip, most, budget });
      const flags = words[0]!;
      if ((flags & 2) !== 0) this.#isBounded = true;
      for (let at = 1; at < words.length; at += 2 * moves) {
        if (this.#budget <= 0) {
          this.#isBounded = true;
          return undefined;
        }
        const repacking = this.#decide(words.subarray(at, at + 2 * moves));
        if (repacking) return repacking;
      }
      if ((flags & 1) !== 0) return undefined;
      skip += most;
    }
  }

  // `proposal`: pairs of a grant and a target.
  #decide(proposal: ArrayLike<number>): Repacking | undefined {
    const moves: Move[] = [];
    let { state } = this.question;
    const isImpossible = this.#firstMoves.get(keyOf(proposal[0]!, proposal[1]!)) === null;
    this.#budget -= isImpossible ? COST_OF_IMPOSSIBLE : 1;
    for (let at = 0; at < proposal.length; at += 2) {
      const next = this.#move(state, proposal[at]!, proposal[at + 1]!, at === 0);
      if (!next) return undefined;
      moves.push(next.move);
      state = next.state;
    }
    const decision = decideWhether({ ...this.question, state });
    return decision && repackingOf(decision, moves, this.#isBounded);
  }

  #move(state: Assignments, grant: number, target: number, isFirst: boolean): StateAfterMove | undefined {
    const key = keyOf(grant, target);
    const cached = isFirst ? this.#firstMoves.get(key) : undefined;
    if (cached !== undefined) return cached ?? undefined;
    const { targets } = this.grants[grant]!;
    const next = moveOf(this.question, state, this.grants[grant]!, targets[target]!);
    if (isFirst) this.#firstMoves.set(key, next ?? null);
    return next;
  }
}

const consenting = podsThat(({ movable }) => movable !== undefined);

/** The movable pods of a list. */
function movablePods(pods: readonly PodAssignment[], time: MoveTime): readonly PodAssignment[] {
  return consenting(pods).filter((pod) => {
    const { maxPerHour } = pod.movable!;
    return isSettled(pod) && (maxPerHour === null || recentMoves(pod, time).length < maxPerHour);
  });
}

const LIMITS: RepackLimits = { maxMoves: 2, budget: 200 };

/** `isCandidate`: true if a grant that may move now may also be asked. */
export function searchMoves(
  question: Question,
  time: MoveTime,
  isCandidate: (pod: PodAssignment) => boolean = () => true,
): Repacking | NoRepacking {
  return repack(question, movablePods(question.state.pods, time).filter(isCandidate), LIMITS);
}
