// Diagnostics: publishes what managers do on channels of node:diagnostics_channel. A channel
// without subscribers costs nothing.
import { type Channel, channel } from 'node:diagnostics_channel';
import type { EnforcementLevel } from '../account/levels.js';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { AdmissionError } from './admission-error.js';
import type { ReadOnlyHost } from './host.js';

/** The names of the channels by step. {@link DiagnosticsMessages} has their messages. */
export const DIAGNOSTICS_CHANNELS = Object.freeze({
  admit: 'numalign:admit',
  wait: 'numalign:wait',
  release: 'numalign:release',
  apply: 'numalign:apply',
  reconcile: 'numalign:reconcile',
  drift: 'numalign:drift',
  error: 'numalign:error',
});

/** The steps that have a channel: {@link DIAGNOSTICS_CHANNELS} names it. */
export type DiagnosticsStep = keyof typeof DIAGNOSTICS_CHANNELS;

/** The fields of every message. */
export interface DiagnosticsOrigin {
  /** The {@link Manager.id} of the manager. */
  readonly managerId: number;
  /** The state folder; empty if nothing is kept on disk. */
  readonly stateDir: string;
}

/** The fields of every message about a step that is done or has failed. */
export interface DiagnosticsStepMessage extends DiagnosticsOrigin {
  /** The duration by the monotonic clock. */
  readonly durationMs: number;
  /** The error that the step threw; null if it is done. */
  readonly error: unknown;
  /** The `code` or the name of the error; null if the step is done. */
  readonly code: string | null;
}

/** A container of a request. */
export interface DiagnosticsContainer {
  /** Name of the container; for a grant that `acquire` makes, `main`. */
  readonly name: string;
  /**
   * `init` ends before the next container starts; `sidecar` starts with these and lasts as long as
   * the pod; `app` is every other container.
   */
  readonly kind: 'init' | 'sidecar' | 'app';
  /**
   * How many exclusive CPUs it asks for; 0: it runs in the shared pool of its pod or the machine.
   */
  readonly exclusiveCpus: number;
  /** Whether memory is booked on NUMA nodes for it alone. */
  readonly booksMemory: boolean;
  /** The booked types of memory, such as `memory` and `hugepages-2Mi`. */
  readonly memoryTypes: readonly string[];
  /** How many L3 groups its exclusive CPUs are in; null without any. */
  readonly l3Groups: number | null;
}

/** A valid request of `acquire` or `admit` was answered. */
export interface AdmitMessage extends DiagnosticsStepMessage {
  /**
   * `already`: admitted before. `rejected`: no room, or against the policy. `failed`: not decided
   * or recorded (lock, disk, abort).
   */
  readonly outcome: 'admitted' | 'already' | 'rejected' | 'failed';
  /** The uid; null if there is none yet. */
  readonly uid: string | null;
  /** The name of the grant or pod; null if it has none yet. */
  readonly name: string | null;
  /** The topology policy of the request, such as `best-effort`. */
  readonly policy: string;
  /** The topology scope of the request: `container` or `pod`. */
  readonly scope: string;
  /** Placement options by the kubelet's names. */
  readonly options: Readonly<Record<string, boolean>>;
  /** Whether the request has `wait`. Then `durationMs` includes the wait. */
  readonly wait: boolean;
  /** One entry for each container of the request, init containers and sidecars first. */
  readonly containers: readonly DiagnosticsContainer[];
  /** What a pod that is booked as a whole asks for; else null. */
  readonly booking: Pick<DiagnosticsContainer, 'exclusiveCpus' | 'memoryTypes' | 'l3Groups'> | null;
  /** The container without room; null for the whole pod, and without a rejection. */
  readonly container: string | null;
  /** All CPUs of the pod as a list, such as `2-3`; null if it is not admitted. */
  readonly cpus: string | null;
  /** The NUMA nodes of `cpus` as a list, such as `0-1`; null if the pod is not admitted. */
  readonly numaNodes: string | null;
  /** The enforcement level that the grant has reached; null if the pod is not admitted. */
  readonly enforcement: EnforcementLevel | null;
}

/** A request with `wait` queues, because there is no room or others wait. */
export interface WaitMessage extends DiagnosticsOrigin {
  /** As in {@link AdmitMessage}. */
  readonly uid: string | null;
  /** The requested name; null if the request has none. */
  readonly name: string | null;
}

/** A release or handover of a grant is done or failed. Grants of dead owners have no message. */
export interface ReleaseMessage extends DiagnosticsStepMessage {
  /** The uid of the grant or pod. */
  readonly uid: string;
  /** The name of the grant or pod; its uid if it was given none. */
  readonly name: string;
  /** The CPUs that it had, as a list. */
  readonly cpus: string;
  /** Whether children keep the grant. */
  readonly handedOver: boolean;
}

/** Threads moved onto the CPUs of a grant or off them. Starts of Workers have no message. */
export interface ApplyMessage extends DiagnosticsStepMessage {
  /** The uid of the grant. */
  readonly uid: string;
  /** The call that moved the threads. */
  readonly action: ApplyAction;
  /** The CPUs of the grant afterwards, as a list; empty: the shared pool. */
  readonly cpus: string;
  /** How many threads moved; null if it failed, or for a process. */
  readonly moved: number | null;
  /** How many threads did not move; null in the same cases as `moved`. */
  readonly unmovable: number | null;
  /** The started or attached process; else null. */
  readonly pid: number | null;
}

/**
 * The call that moved threads: `pin` (of a grant or a part), `place` ({@link Grant.placeThreads}),
 * `prewarm` ({@link Grant.prewarmPool}), `unpin`, `resize`, `spawn` (also {@link Grant.fork} and
 * {@link Grant.startChild}), `exec` or `attach` (of a grant or a container).
 */
export type ApplyAction = 'pin' | 'place' | 'prewarm' | 'unpin' | 'resize' | 'spawn' | 'exec' | 'attach';

/** A round of reconciling ended. */
export interface ReconcileMessage extends DiagnosticsStepMessage {
  /** How many threads, cgroups and members were compared. */
  readonly checked: number;
  /** How many of the differences are gone after this round. */
  readonly repaired: number;
  /** How many differences are left alone, because another program always changes them back. */
  readonly contested: number;
  /** Writes to the kernel and to the state; 0 without a difference. */
  readonly writes: number;
}

/** Reconciling found a difference. */
export interface DriftMessage extends DiagnosticsOrigin {
  /** One of {@link DriftKind}. */
  readonly kind: string;
  /** The uid of the grant; null if it concerns no single grant. */
  readonly uid: string | null;
  /** A description for people. */
  readonly what: string;
  /** Whether the difference is gone after the repair. */
  readonly repaired: boolean;
}

/** A step failed. A rejection is an answer, not an error. */
export interface ErrorMessage extends DiagnosticsOrigin {
  /** The failed step; `watch`: looking for changes while there is a listener of `change`. */
  readonly step: DiagnosticsStep | 'watch';
  /** The `code` of the error, else its `name`, else `unknown`. */
  readonly code: string;
  /** The message of the error, in words. */
  readonly message: string;
  /** What the step threw, unchanged. */
  readonly error: unknown;
}

/** The messages of each channel. They are frozen. */
export interface DiagnosticsMessages {
  /** A request of `acquire` or `admit` was answered: `numalign:admit`. */
  admit: AdmitMessage;
  /** A request waits for room: `numalign:wait`. */
  wait: WaitMessage;
  /** A grant was released or handed over: `numalign:release`. */
  release: ReleaseMessage;
  /** Threads moved onto a grant or off it: `numalign:apply`. */
  apply: ApplyMessage;
  /** A round of reconciling ended: `numalign:reconcile`. */
  reconcile: ReconcileMessage;
  /** Reconciling found a difference: `numalign:drift`. */
  drift: DriftMessage;
  /** A step failed: `numalign:error`. */
  error: ErrorMessage;
}

type TracedStep = 'admit' | 'release' | 'apply' | 'reconcile';
type Fields<S extends DiagnosticsStep> = Omit<DiagnosticsMessages[S], keyof DiagnosticsOrigin>;
type StepFields<S extends TracedStep> = Omit<DiagnosticsMessages[S], keyof DiagnosticsStepMessage>;

/** The result of a step; `value` is undefined if it threw. */
export interface StepResult<T> {
  readonly value: T | undefined;
  readonly error: unknown;
}

/** The part of a host that identifies its manager. */
export type Source = Pick<ReadOnlyHost, 'managerId' | 'ledger'>;

let channels: Record<DiagnosticsStep, Channel> | undefined;
let partsLookedAt = -1;

/** Whether this thread has loaded node:diagnostics_channel. Without it nothing has subscribed. */
function mayHaveSubscribers(): boolean {
  const { moduleLoadList: parts } = process as { moduleLoadList?: readonly string[] };
  if (!parts) return true;
  if (parts.length === partsLookedAt) return false;
  partsLookedAt = parts.length;
  // A list with other names says nothing.
  return parts.includes('NativeModule diagnostics_channel') || !parts.includes('NativeModule fs');
}

/** The channel of a step, if it has subscribers. To load Node's channels takes a millisecond. */
function channelOf(step: DiagnosticsStep): Channel | undefined {
  if (!channels) {
    if (!mayHaveSubscribers()) return undefined;
    const entries = Object.entries(DIAGNOSTICS_CHANNELS).map(([each, name]) => [each, channel(name)]);
    channels = Object.fromEntries(entries) as Record<DiagnosticsStep, Channel>;
  }
  return channels[step].hasSubscribers ? channels[step] : undefined;
}

const managerIds = () => ({ last: 0 });

/** Returns an id that no other manager of this thread has. */
export function newManagerId(): number {
  return ++ENVIRONMENT.of(managerIds).last;
}

/** Publishes what `describe` returns, if the channel has subscribers. */
export function publish<S extends DiagnosticsStep>(
  step: S,
  { managerId, ledger }: Source,
  describe: () => Fields<S>,
): void {
  const to = channelOf(step);
  if (!to) return;
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
 * Runs a step, synchronous or not, and publishes its result. `describe` is called only if there are
 * subscribers, and must not throw. An error of the step is rethrown and, unless it is a rejection,
 * published on the channel of errors too.
 */
export function traced<S extends TracedStep, T>(
  step: S,
  source: Source,
  action: () => T,
  describe: (result: StepResult<Awaited<T>>) => StepFields<S>,
): T {
  if (!channelOf(step) && !channelOf('error')) return action();
  const begin = performance.now();
  const publishResult = (outcome: StepResult<Awaited<T>>, code: string | null) => {
    const durationMs = performance.now() - begin;
    publish(
      step,
      source,
      () => ({ durationMs, error: outcome.error, code, ...describe(outcome) }) as unknown as Fields<S>,
    );
  };
  const succeed = (value: Awaited<T>): Awaited<T> => {
    publishResult({ value, error: null }, null);
    return value;
  };
  const fail = (error: unknown): never => {
    publishResult({ value: undefined, error }, codeOf(error));
    if (!(error instanceof AdmissionError)) publishError(source, step, error);
    throw error;
  };
  let result: T;
  try {
    result = action();
  } catch (error) {
    return fail(error);
  }
  if (result instanceof Promise) return result.then(succeed, fail) as T;
  return succeed(result as Awaited<T>) as T;
}

function codeOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  if (typeof code === 'string') return code;
  return typeof name === 'string' ? name : 'unknown';
}
