// RepackingReport: what moves would make of a request that is rejected, for programs and for people.
// Pure.
import { memoryOf, nodesOf, presentCpus, runningCpus } from '../../account/pod-holdings.js';
import { cpusNamed } from '../../base/text/cpus-named.js';
import { printable } from '../../base/text/printable.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import type { Rejection } from '../rejection.js';
import type { Move } from './move.js';
import type { NoRepacking, Repacking } from './repacking.js';

/** What a grant would run on once it has made room: elsewhere, or on fewer of its CPUs. */
export interface ProposedMove {
  /** The uid of the grant that would move. */
  readonly uid: string;
  /** The name of that grant; its uid if it was given none. */
  readonly name: string;
  /** What it runs on. */
  readonly before: CpuSet;
  /** What it would run on. */
  readonly cpus: CpuSet;
  /** The NUMA nodes of all that it would hold. */
  readonly nodes: NodeSet;
}

/** A grant that was asked to move, and has not. */
export interface UnmovedGrant {
  /** The uid of the grant. */
  readonly uid: string;
  /** The name of the grant; its uid if it was given none. */
  readonly name: string;
  /** The code of the error. */
  readonly code: string;
  /** Of ERR_NOT_MOVED: `refused`, `no-answer`, `no-room`, `ended` or `called-off`; else null. */
  readonly reason: string | null;
}

/** What grants that can make room would make of a request that is rejected. */
export interface RepackingReport {
  /** By which it would be admitted, in their order; empty where none are known. */
  readonly moves: readonly ProposedMove[];
  /**
   * Why there are none: what is free in all would not do (`sum`), nor would any NUMA nodes
   * (`place`), no grant that consents makes room (`grants`), custom hint providers cannot be asked
   * (`unknown`); null where there are.
   */
  readonly reason: NoRepacking['reason'] | null;
  /** Those that would have made room, and have not moved. */
  readonly unmoved: readonly UnmovedGrant[];
  /** Not all moves were tried: there may be some. */
  readonly isBounded: boolean;
  /** All of it in one line. */
  readonly text: string;
}

declare module '../../base/errors.js' {
  interface ErrorDetails {
    /** Of a rejection by the policy `dynamic`: what moves would have made of it. */
    repacking?: RepackingReport;
  }
}

const NO_MOVES: Readonly<Record<NoRepacking['reason'], string>> = {
  sum: 'no move would help: what is free in all would not do',
  place: 'no move would help: no NUMA nodes would do',
  grants: 'no move of a grant that consents would make room',
  unknown: 'whether moves would help is not known: custom hint providers cannot be asked',
};

export function proposedMove(topology: Topology, { uid, before, after }: Move): ProposedMove {
  const nodes = topology.nodesOf(presentCpus(after)).union(nodesOf(memoryOf(after)));
  return { uid, name: before.name, before: runningCpus(before), cpus: runningCpus(after), nodes };
}

export function reportOf(
  topology: Topology,
  answer: Pick<Repacking, 'isFound' | 'moves' | 'isBounded'> | NoRepacking,
  unmoved: readonly UnmovedGrant[] = [],
): RepackingReport {
  const moves = answer.isFound ? answer.moves.map((move) => proposedMove(topology, move)) : [];
  const reason = answer.isFound ? null : answer.reason;
  const { isBounded } = answer;
  const texts = [
    ...unmoved.map(
      ({ name, reason, code }) => `"${name}" would have made room, and has not moved (${reason ?? code})`,
    ),
    reason === null ? `would be admitted after ${stepsText(moves)}` : NO_MOVES[reason],
    ...(isBounded && reason !== null ? ['not all moves were tried'] : []),
  ];
  return { moves, reason, unmoved, isBounded, text: printable(texts.join('; ')) };
}

const moveText = ({ name, before, cpus }: ProposedMove) =>
  before.isEmpty ? `"${name}"` : `"${name}" (${cpusNamed(before)} to ${cpus})`;

// They all move, or all shrink.
function stepsText(moves: readonly ProposedMove[]): string {
  const shrinks = moves.every(({ before, cpus }) => cpus.size < before.size);
  return `${shrinks ? 'shrinking' : 'moving'} ${listOf(moves.map(moveText))}`;
}

function listOf(texts: readonly string[]): string {
  const last = texts.length - 1;
  return last < 1 ? texts.join('') : `${texts.slice(0, last).join(', ')} and ${texts[last]}`;
}

/** The rejection, with what is reported in its details and its texts. */
export function withReport(rejection: Rejection, repacking: RepackingReport): Rejection {
  const { message, explanation, facts } = rejection;
  return {
    ...rejection,
    message: `${message}; ${repacking.text}`,
    explanation: { ...explanation, text: `${explanation.text}\n${repacking.text}` },
    facts: { ...facts, repacking },
  };
}
