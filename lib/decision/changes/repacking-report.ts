// RepackingReport: the moves that would admit a rejected request, for programs and people. Pure.
import { memoryOf, nodesOf, presentCpus, runningCpus } from '../../account/pod-holdings.js';
import { cpusNamed } from '../../base/text/cpus-named.js';
import { printable } from '../../base/text/printable.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import type { Question } from '../question.js';
import type { Rejection } from '../rejection.js';
import type { Move } from './move.js';
import type { NoRepacking, Repacking } from './repacking.js';

/** The CPUs of a grant after it has made room: elsewhere, or fewer of its own. */
export interface ProposedMove {
  /** The uid of the grant that would move. */
  readonly uid: string;
  /** The name of that grant; its uid if it was given none. */
  readonly name: string;
  /** The CPUs that it runs on now. */
  readonly before: CpuSet;
  /** The CPUs that it would run on. */
  readonly cpus: CpuSet;
  /** The NUMA nodes of the CPUs and memory that it would hold. */
  readonly nodes: NodeSet;
}

/** A grant that was asked to move, and did not. */
export interface UnmovedGrant {
  /** The uid of the grant. */
  readonly uid: string;
  /** The name of the grant; its uid if it was given none. */
  readonly name: string;
  /** The error code of the failed move. */
  readonly code: string;
  /** For ERR_NOT_MOVED: `refused`, `no-answer`, `no-room`, `ended` or `called-off`; else null. */
  readonly reason: string | null;
}

/** How other grants can make room for a rejected request. */
export interface RepackingReport {
  /** The moves that would admit the request, in their order; empty if none are known. */
  readonly moves: readonly ProposedMove[];
  /**
   * Why there are no moves: too little is free in all (`sum`), no NUMA nodes would do even if
   * grants moved (`place`), no grant that consents can make room (`grants`), or custom hint
   * providers cannot be asked (`unknown`). Null if there are moves.
   */
  readonly reason: NoRepacking['reason'] | null;
  /** The grants that could have made room, but did not move. */
  readonly unmoved: readonly UnmovedGrant[];
  /** True if not all moves were tried: others may help. */
  readonly isBounded: boolean;
  /** The report in one line. */
  readonly text: string;
}

const NO_MOVES: Readonly<Record<NoRepacking['reason'], string>> = {
  sum: 'no move would help: too little is free in all',
  place: 'no move would help: no NUMA nodes would do',
  grants: 'no move of a grant that consents would make room',
  unknown: 'moves were not tried: custom hint providers cannot be asked',
};

export function proposedMove(topology: Topology, { uid, before, after }: Move): ProposedMove {
  const nodes = topology.nodesOf(presentCpus(after)).union(nodesOf(memoryOf(after)));
  return { uid, name: before.name, before: runningCpus(before), cpus: runningCpus(after), nodes };
}

export function reportOf(
  { topology, request }: Pick<Question, 'topology' | 'request'>,
  answer: Pick<Repacking, 'isFound' | 'moves' | 'isBounded'> | NoRepacking,
  unmoved: readonly UnmovedGrant[] = [],
): RepackingReport {
  const moves = answer.isFound ? answer.moves.map((move) => proposedMove(topology, move)) : [];
  const reason = answer.isFound ? null : answer.reason;
  const { isBounded } = answer;
  const { coreKind } = request.placement;
  const isOfKind = (coreKind === 'performance' || coreKind === 'efficiency') && reason !== 'unknown';
  const kind = isOfKind ? `, with ${coreKind} cores alone` : '';
  const texts = [
    ...unmoved.map(
      ({ name, reason, code }) => `"${name}" could have made room, but did not move (${reason ?? code})`,
    ),
    reason === null ? `would be admitted after ${stepsText(moves)}` : `${NO_MOVES[reason]}${kind}`,
    ...(isBounded && reason !== null ? ['not all moves were tried'] : []),
  ];
  return { moves, reason, unmoved, isBounded, text: printable(texts.join('; ')) };
}

const moveText = ({ name, before, cpus }: ProposedMove) => `"${name}" (${cpusNamed(before)} to ${cpus})`;

// Either all grants move, or all shrink.
function stepsText(moves: readonly ProposedMove[]): string {
  const shrinks = moves.every(({ before, cpus }) => cpus.size < before.size);
  return `${shrinks ? 'shrinking' : 'moving'} ${listOf(moves.map(moveText))}`;
}

function listOf(texts: readonly string[]): string {
  const last = texts.length - 1;
  return last < 1 ? texts.join('') : `${texts.slice(0, last).join(', ')} and ${texts[last]}`;
}

/** Adds a report to the details and the texts of a rejection. */
export function withReport(rejection: Rejection, repacking: RepackingReport): Rejection {
  const { message, explanation, facts } = rejection;
  return {
    ...rejection,
    message: `${message}; ${repacking.text}`,
    explanation: { ...explanation, text: `${explanation.text}\n${repacking.text}` },
    facts: { ...facts, repacking },
  };
}
