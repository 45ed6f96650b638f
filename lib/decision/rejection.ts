// Rejection: why a pod is not admitted, with what would have admitted it. Pure, but for what custom
// hint providers tell.
import type { CpuPool } from '../account/pod-assignment.js';
import { randomUUID } from '../base/builtins.js';
import { thrownText } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import type { Placement } from '../input/placement.js';
import { TOPOLOGY_MANAGER_POLICIES } from '../input/policies.js';
import {
  type AdmissionReason,
  type Explanation,
  explain,
  holdersOf,
  type OfferedHints,
} from './explanation.js';
import { askForAmounts, type NodeAmount } from './hints/hint-provider.js';
import { begin, hintRequest, type Offer, type Progress, place, type Question, undo } from './place.js';

/** Why there is none: `reason` and `explanation` are in the error's details. */
export interface Rejection {
  readonly error: NumalignError;
  readonly offers: readonly Offer[];
}

type Amounts = ReadonlyMap<OfferedHints, readonly NodeAmount[]>;

// As they were when it failed, before anything is given back.
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

export function explained(progress: Progress, error: NumalignError, amounts: Amounts): NumalignError {
  const { question, offers, container } = progress;
  // A rejection of the whole pod is told of what there was before any container took its share.
  const draft = container ? progress.draft : begin(question, progress.pool).draft;
  const explanation = explain({
    draft,
    reason: error.details.reason as AdmissionReason,
    message: error.message,
    container: container?.name ?? null,
    offered: offers.at(-1)?.offered ?? [],
    amounts,
    admittedUnder: weakerPolicies(question.request.placement)
      .filter((placement) => wouldAdmit(question, progress.pool, placement))
      .map((placement) => placement.topologyPolicy),
  });
  const { settings } = question.state;
  return new NumalignError(error.code, messageOf(error.message, explanation), {
    ...error.details,
    cause: error.cause,
    reserved: settings.reservedSystemCPUs.toString(),
    holders: holdersOf(draft),
    explanation,
  });
}

// One line: the lines of the explanation, but for its first.
function messageOf(message: string, { text }: Explanation): string {
  const rest = text
    .split('\n')
    .slice(1)
    .map((line) => line.trim());
  return [message, ...rest].join('; ');
}

/** The placements that differ in a weaker policy, the strictest first. */
function weakerPolicies(placement: Placement): Placement[] {
  const weaker = TOPOLOGY_MANAGER_POLICIES.slice(
    0,
    TOPOLOGY_MANAGER_POLICIES.indexOf(placement.topologyPolicy),
  );
  return weaker.reverse().map((topologyPolicy) => ({ ...placement, topologyPolicy }));
}

// Whatever a provider does here, the reason of the rejection must not be lost.
function wouldAdmit(question: Question, pool: CpuPool, placement: Placement): boolean {
  const request = { ...question.request, placement };
  const asked = { ...question, request, uid: randomUUID(), dryRun: true };
  try {
    place(begin(asked, pool));
    return true;
  } catch {
    return false;
  } finally {
    undo(asked);
  }
}

// ---- rejections

// A provider that keeps what it should give back must not go unnoticed.
export function withRollback(error: NumalignError, rollback: unknown): NumalignError {
  const { details, cause, code } = error;
  return new NumalignError(code, `${error.message}; and ${thrownText(rollback)}`, {
    ...details,
    cause,
    rollback,
  });
}
