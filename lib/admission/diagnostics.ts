// Diagnostics: what managers do, told on channels of node:diagnostics_channel. Nothing is computed
// where nobody subscribes.
import { type Channel, channel } from 'node:diagnostics_channel';
import type { EnforcementLevel } from '../account/pod-assignment.js';
import { ENVIRONMENT } from '../base/registry.js';
import { AdmissionError } from './admission-error.js';
import type { ReadOnlySite } from './site.js';

/** The channels by what they tell; {@link DiagnosticsMessages} has what is published on each. */
export const DIAGNOSTICS_CHANNELS = Object.freeze({
  admit: 'numalign:admit',
  wait: 'numalign:wait',
  release: 'numalign:release',
  apply: 'numalign:apply',
  reconcile: 'numalign:reconcile',
  drift: 'numalign:drift',
  error: 'numalign:error',
});

/** The steps that have a channel. */
export type DiagnosticsStep = keyof typeof DIAGNOSTICS_CHANNELS;

/** In every message: who tells it. */
export interface DiagnosticsOrigin {
  /** {@link Manager.id}. */
  readonly managerId: number;
  /** The state folder; empty where nothing is kept on disk. */
  readonly stateDir: string;
}

/** In every message of a step that is done or has failed. */
export interface DiagnosticsStepMessage extends DiagnosticsOrigin {
  /** By the monotonic clock. */
  readonly durationMs: number;
  /** What it has thrown; null where it is done. */
  readonly error: unknown;
  /** The error's `code`, or its name where it has none; null where it is done. */
  readonly code: string | null;
}

/** A container of a pod that asks to be admitted. */
export interface DiagnosticsContainer {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  /** How many exclusive CPUs it asks for; 0: it runs in the shared pool of its pod or the machine. */
  readonly exclusiveCpus: number;
  /** Memory is booked on NUMA nodes for it alone. */
  readonly booksMemory: boolean;
  /** The types of memory that it asks for and are booked, such as `memory` and `hugepages-2Mi`. */
  readonly memoryTypes: readonly string[];
  /** Over how many L3 groups its exclusive CPUs are; null where it has none. */
  readonly l3Groups: number | null;
}

/** A request of `acquire` or `admit` has been answered; bad input is not a request. */
export interface AdmitMessage extends DiagnosticsStepMessage {
  /**
   * `already`: it was placed before. `rejected`: there is no room for it, or none as the policy
   * asks. `failed`: it could not be decided or recorded.
   */
  readonly outcome: 'admitted' | 'already' | 'rejected' | 'failed';
  /** The pod's uid, by which a grant is known; null where it was to be made up and has not been. */
  readonly uid: string | null;
  readonly name: string | null;
  readonly policy: string;
  readonly scope: string;
  /** Placement options by the kubelet's names. */
  readonly options: Readonly<Record<string, boolean>>;
  /** It was ready to wait for room: `durationMs` has that in it. */
  readonly wait: boolean;
  readonly containers: readonly DiagnosticsContainer[];
  /** What a pod asks for that is booked as a whole, and dealt out among its containers; else null. */
  readonly booking: Pick<DiagnosticsContainer, 'exclusiveCpus' | 'memoryTypes' | 'l3Groups'> | null;
  /**
   * Rejected: the container for which there was no room; null: the whole pod, and where it is not
   * rejected.
   */
  readonly container: string | null;
  /** As a list, such as `2-3`: all that the pod has; null where it has not been admitted. */
  readonly cpus: string | null;
  readonly numaNodes: string | null;
  readonly enforcement: EnforcementLevel | null;
}

/** A request has queued: there is no room for it now, or others wait. Told once, when it does. */
export interface WaitMessage extends DiagnosticsOrigin {
  /** As in {@link AdmitMessage}. */
  readonly uid: string | null;
  readonly name: string | null;
}

/** CPUs have been given back, or were to be. Grants of dead owners end without a message. */
export interface ReleaseMessage extends DiagnosticsStepMessage {
  readonly uid: string;
  readonly name: string;
  /** As a list: what it had. */
  readonly cpus: string;
  /** Children live on by it, and it ends with the last of them. */
  readonly handedOver: boolean;
}

/** Threads were put on CPUs of a grant, or taken off them. */
export interface ApplyMessage extends DiagnosticsStepMessage {
  readonly uid: string;
  readonly action: ApplyAction;
  /** As a list: what the grant has after it. */
  readonly cpus: string;
  /** How many threads; null where it failed, and of a process that was started or attached. */
  readonly moved: number | null;
  readonly unmovable: number | null;
  /** The process that was started or attached; else null. */
  readonly pid: number | null;
}

/** What moved threads, see {@link ApplyMessage}. */
export type ApplyAction = 'pin' | 'place' | 'prewarm' | 'unpin' | 'resize' | 'spawn' | 'exec' | 'attach';

/** What is so has been compared with what should be. */
export interface ReconcileMessage extends DiagnosticsStepMessage {
  /** How many things were compared: threads, cgroups, members. */
  readonly checked: number;
  readonly repaired: number;
  /** What is given up at present, because somebody always changes it back. */
  readonly contested: number;
  /** Writes to the kernel and to the state; 0 where all was as it should be. */
  readonly writes: number;
}

/** Something was not as it should be. */
export interface DriftMessage extends DiagnosticsOrigin {
  readonly kind: string;
  /** The grant's; null where it is nobody's in particular. */
  readonly uid: string | null;
  /** For people. */
  readonly what: string;
  readonly repaired: boolean;
}

/** A step has failed. A rejection is an answer, and no error. */
export interface ErrorMessage extends DiagnosticsOrigin {
  /** The step that failed; `watch`: looking for changes, while somebody listens to `change`. */
  readonly step: DiagnosticsStep | 'watch';
  readonly code: string;
  readonly message: string;
  readonly error: unknown;
}

/** What is published on each channel. Messages are frozen. */
export interface DiagnosticsMessages {
  admit: AdmitMessage;
  wait: WaitMessage;
  release: ReleaseMessage;
  apply: ApplyMessage;
  reconcile: ReconcileMessage;
  drift: DriftMessage;
  error: ErrorMessage;
}

type TracedStep = 'admit' | 'release' | 'apply' | 'reconcile';
type Fields<S extends DiagnosticsStep> = Omit<DiagnosticsMessages[S], keyof DiagnosticsOrigin>;
type Described<S extends TracedStep> = Omit<DiagnosticsMessages[S], keyof DiagnosticsStepMessage>;

/** How a step has ended: `value` is undefined where it has thrown. */
export interface Ended<T> {
  readonly value: T | undefined;
  readonly error: unknown;
}

/** The part of a site by which its manager is known. */
export type Source = Pick<ReadOnlySite, 'managerId' | 'ledger'>;

const CHANNELS = Object.fromEntries(
  Object.entries(DIAGNOSTICS_CHANNELS).map(([step, name]) => [step, channel(name)]),
) as Record<DiagnosticsStep, Channel>;

const managerIds = () => ({ last: 0 });

/** Another each time: it tells the managers of a thread apart. */
export function newManagerId(): number {
  return ++ENVIRONMENT.of(managerIds).last;
}

/** Publishes what `describe` answers, if somebody subscribes. */
export function publish<S extends DiagnosticsStep>(
  step: S,
  { managerId, ledger }: Source,
  describe: () => Fields<S>,
): void {
  const to = CHANNELS[step];
  if (!to.hasSubscribers) return;
  const stateDir = ledger.scope === 'memory' ? '' : ledger.path;
  to.publish(Object.freeze({ managerId, stateDir, ...describe() }));
}

export function publishError(source: Source, step: ErrorMessage['step'], error: unknown): void {
  publish('error', source, () => ({
    step,
    code: codeOf(error),
    message: error instanceof Error ? error.message : String(error),
    error,
  }));
}

/**
 * Does a step, at once or later, and publishes how it has ended. `describe` is called only where
 * somebody subscribes, and must not throw. What the step throws is thrown on, and told on the
 * channel of errors too, unless it is a rejection.
 */
export function traced<S extends TracedStep, T>(
  step: S,
  source: Source,
  action: () => T,
  describe: (ended: Ended<Awaited<T>>) => Described<S>,
): T {
  if (!CHANNELS[step].hasSubscribers && !CHANNELS.error.hasSubscribers) return action();
  const begin = performance.now();
  const tell = (ended: Ended<Awaited<T>>, code: string | null) => {
    const durationMs = performance.now() - begin;
    publish(
      step,
      source,
      () => ({ durationMs, error: ended.error, code, ...describe(ended) }) as unknown as Fields<S>,
    );
  };
  const done = (value: Awaited<T>): Awaited<T> => {
    tell({ value, error: null }, null);
    return value;
  };
  const failed = (error: unknown): never => {
    tell({ value: undefined, error }, codeOf(error));
    if (!(error instanceof AdmissionError)) publishError(source, step, error);
    throw error;
  };
  let result: T;
  try {
    result = action();
  } catch (error) {
    return failed(error);
  }
  if (result instanceof Promise) return result.then(done, failed) as T;
  return done(result as Awaited<T>) as T;
}

function codeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' ? name : 'unknown';
}
