// Rejection: why a pod is not admitted, and what would have admitted it. Pure, except for custom
// hint providers.
import type { CpuPool } from '../account/pod-holdings.js';
import { thrownText } from '../base/check-options.js';
import { NumalignError, reworded } from '../base/errors.js';
import { type AdmissionReason, isShortage, type Refusal, type RejectionCode } from '../base/refusal.js';
import type { Placement } from '../input/placement.js';
import { TOPOLOGY_MANAGER_POLICIES } from '../input/policies.js';
import { type Explanation, explain } from './explanation.js';
import { askForAmounts, type NodeAmount } from './hints/hint-provider.js';
import type { OfferedHints } from './hints/merge-hints.js';
import { place } from './place-pod.js';
import { begin, type Offer, type Progress } from './progress.js';
import { hintRequest, type Question, undo } from './question.js';
import { type Holder, holdersOf } from './resource-explanations.js';

/** Why a request is not admitted, see {@link AdmissionError}. */
export interface Rejection {
  /** Always false. */
  readonly admitted: false;
  /** The reason in the kubelet's words. */
  readonly reason: AdmissionReason;
  /** The code of the {@link AdmissionError}. */
  readonly code: RejectionCode;
  /** The explanation in one line. */
  readonly message: string;
  /** The facts behind the rejection, by resource. */
  readonly explanation: Explanation;
  /** All other grants, and pods of the kubelet, with exclusive CPUs. */
  readonly holders: readonly Holder[];
  /** The reserved CPUs, as a list. */
  readonly reserved: string;
  /** True if there is no room, so that a release can change the answer. */
  readonly isShortage: boolean;
  /** The facts of the code, such as `value` and `valid`. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** The hints that were merged, step by step. */
  readonly offers: readonly Offer[];
  /** What a callback threw. */
  readonly cause?: unknown;
  /** What a hint provider threw while it released its allocation. */
  readonly rollback?: unknown;
}

type Amounts = ReadonlyMap<OfferedHints, readonly NodeAmount[]>;

/** Reads the amounts at the failure, before anything is given back. */
export function collectAmounts(progress: Progress): Amounts {
  const { providers } = progress.question;
  const offered = progress.offers.at(-1)?.offered ?? [];
  return new Map(
    offered.map((hints) => {
      const provider = providers.find(({ name }) => name === hints.provider);
      return [hints, askForAmounts(provider, hintRequest(progress), hints.resource)];
    }),
  );
}

/** The rejection for a refusal, after the rollback. `rollback`: the error of a failed rollback. */
export function rejectionOf(
  progress: Progress,
  { reason, code, message: why, details: facts, cause }: Refusal,
  amounts: Amounts,
  rollback: unknown,
): Rejection {
  const { question, offers, container } = progress;
  const message = rollback === undefined ? why : rollbackText(why, rollback);
  // A rejection of the whole pod describes the machine before any container took its share.
  const draft = container ? progress.draft : begin(question, progress.pool).draft;
  const explanation = explain({
    draft,
    reason,
    message,
    messageCpus: code === 'ERR_INSUFFICIENT_CPUS' ? facts.value : undefined,
    container: container?.name ?? null,
    offered: offers.at(-1)?.offered ?? [],
    amounts,
    admittedUnder: weakerPolicies(question.request.placement)
      .filter((placement) => wouldAdmit(question, progress.pool, placement))
      .map((placement) => placement.topologyPolicy),
  });
  return {
    admitted: false,
    reason,
    code,
    message: messageOf(message, explanation),
    explanation,
    holders: holdersOf(question.state).filter(({ uid }) => uid !== question.resized?.uid),
    reserved: question.state.settings.reservedSystemCPUs.toString(),
    isShortage: isShortage(code),
    facts,
    offers,
    cause,
    rollback,
  };
}

/** A rejection with one more fact at its end. */
export function withFact(rejection: Rejection, fact: string): Rejection {
  const { message, explanation } = rejection;
  return {
    ...rejection,
    message: `${message}; ${fact}`,
    explanation: { ...explanation, text: `${explanation.text}\n  ${fact}` },
  };
}

// One line: the lines of the explanation without the first.
function messageOf(message: string, { text }: Explanation): string {
  const rest = text
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
  return [message, ...rest].join('; ');
}

/** The same placement with each weaker policy, the strictest first. */
function weakerPolicies(placement: Placement): Placement[] {
  const weaker = TOPOLOGY_MANAGER_POLICIES.slice(
    0,
    TOPOLOGY_MANAGER_POLICIES.indexOf(placement.topologyPolicy),
  );
  return weaker.reverse().map((topologyPolicy) => ({ ...placement, topologyPolicy }));
}

// A provider's error here must not hide the reason of the rejection.
function wouldAdmit(question: Question, pool: CpuPool, placement: Placement): boolean {
  const request = { ...question.request, placement };
  const trial = { ...question, request, uid: question.trialUid, dryRun: true };
  try {
    place(begin(trial, pool));
    return true;
  } catch {
    return false;
  } finally {
    undo(trial);
  }
}

/**
 * Adds the error of a failed rollback to an error, so that a provider that keeps its allocation
 * does not go unnoticed.
 */
export function withRollback(error: unknown, rollback: unknown): unknown {
  if (rollback === undefined || !(error instanceof NumalignError)) return error;
  return reworded(error, rollbackText(error.message, rollback), { cause: error.cause, rollback });
}

function rollbackText(message: string, rollback: unknown): string {
  return `${message}; and ${thrownText(rollback)}`;
}
