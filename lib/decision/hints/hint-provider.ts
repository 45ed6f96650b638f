// HintProvider: a resource of the caller's own that takes part in admission. What it answers is
// checked here.
import { checkOptions, invalidOption, isName, NAME, thrownText } from '../../base/check-options.js';
import { NumalignError } from '../../base/errors.js';
import { Refusal } from '../../base/refusal.js';
import type { QosClass } from '../../input/pods/pod-request.js';
import type { HintFamily, TopologyHint } from '../../machine/hints.js';
import { type ProviderHints, packHints } from './merge-hints.js';

/** What a NUMA node has of a resource. */
export interface NodeAmount {
  readonly node: number;
  /**
   * What the request could take now; CPUs under full-pcpus-only and hold-sibling in whole cores
   * only.
   */
  readonly free: number;
  /** What the node could ever give: of CPUs the managed ones that are not reserved. */
  readonly possible: number;
}

/** What a provider is asked for. */
export interface HintRequest {
  readonly pod: { readonly uid: string; readonly name: string; readonly qosClass: QosClass };
  /** The container, or null where hints are for the whole pod (scope `pod`). */
  readonly container: string | null;
  readonly kind: 'init' | 'sidecar' | 'app' | null;
  /**
   * By resource: `cpu` in millicores, everything else in whole units. Of a whole pod: what it needs
   * at one time.
   */
  readonly requests: Readonly<Record<string, number>>;
  /**
   * The decision is only planned: what is allocated will be released at once. The pod's uid is then
   * one of its own.
   */
  readonly dryRun: boolean;
}

/** A pod whose share a provider may take back. */
export interface ReleaseRequest {
  readonly pod: { readonly uid: string; readonly name: string };
  readonly dryRun: boolean;
}

/**
 * A provider of topology hints, as the kubelet's managers are. Its functions are called under the
 * state's lock and must neither wait nor return a promise. What one of them throws rolls the whole
 * admission back (ERR_HINT_PROVIDER).
 */
export interface HintProvider {
  readonly name: string;
  /** Where the request can be met now, by resource; null: no preference. Must change nothing. */
  hints(request: HintRequest): ProviderHints;
  /** Takes what one container asks for, near the merged hint as far as possible. */
  allocate(request: HintRequest, hint: TopologyHint): void;
  /**
   * Gives back what was taken for a pod: it is released (whoever did that: seen at this manager's
   * next transaction), its owner has died, or its admission failed later on. Also called for a pod
   * without any, and again where it has thrown.
   */
  release(pod: ReleaseRequest): void;
  /** What there is by resource, for the explanation of a rejection. May be left out. */
  amounts?(request: HintRequest): Readonly<Record<string, readonly NodeAmount[]>>;
}

const METHODS = ['hints', 'allocate', 'release'] as const;

/** The provider with the name it has now. @throws ERR_INVALID_OPTION */
export function checkProvider(provider: unknown): HintProvider {
  if (typeof provider !== 'object' || provider === null)
    invalidOption('provider', provider, 'a HintProvider');
  const given = provider as HintProvider;
  const { name } = given;
  if (!isName(name)) invalidOption('name', name, NAME);
  for (const method of METHODS) {
    if (typeof given[method] !== 'function') invalidOption(method, given[method], 'a function');
  }
  const { amounts } = given;
  if (amounts !== undefined && typeof amounts !== 'function') invalidOption('amounts', amounts, 'a function');
  // A class may have more.
  if (Object.getPrototypeOf(provider) === Object.prototype) {
    checkOptions(provider, ['name', ...METHODS, 'amounts'], 'a HintProvider');
  }
  return Object.freeze({
    name,
    hints: (request: HintRequest) => given.hints(request),
    allocate: (request: HintRequest, hint: TopologyHint) => given.allocate(request, hint),
    release: (pod: ReleaseRequest) => given.release(pod),
    amounts: (request: HintRequest) => given.amounts?.(request) ?? {},
  });
}

// Promises in an answer that is refused: nobody will wait for them, and that they fail must not end
// the process.
export function abandon(answer: unknown, depth = 2): void {
  if (typeof answer !== 'object' || answer === null) return;
  try {
    if (typeof (answer as { then?: unknown }).then === 'function') Promise.resolve(answer).catch(() => {});
    else if (depth > 0) for (const item of Object.values(answer)) abandon(item, depth - 1);
  } catch {
    // Whatever a getter throws: the answer is refused anyway.
  }
}

function failed({ name }: HintProvider, method: string, why: string, cause?: unknown): NumalignError {
  const message = `the hint provider ${name} failed in ${method}(): ${why}`;
  const details = { value: name, method, cause };
  return method === 'allocate'
    ? new Refusal('UnexpectedAdmissionError', 'ERR_HINT_PROVIDER', message, details)
    : new NumalignError('ERR_HINT_PROVIDER', message, details);
}

function call<T>(provider: HintProvider, method: (typeof METHODS)[number], action: () => T): T {
  let isPromise: boolean;
  let result: T;
  try {
    result = action();
    isPromise = typeof (result as { then?: unknown } | null | undefined)?.then === 'function';
  } catch (error) {
    throw failed(provider, method, thrownText(error), error);
  }
  if (!isPromise) return result;
  abandon(result);
  throw failed(provider, method, 'it returned a promise, but the state is locked meanwhile');
}

/** @throws ERR_HINT_PROVIDER */
export function askForHints(
  provider: HintProvider,
  request: HintRequest,
  numaNodes: readonly number[],
): Record<string, HintFamily> {
  const hints = call(provider, 'hints', () => provider.hints(request));
  try {
    return packHints(hints, numaNodes);
  } catch (error) {
    abandon(hints);
    throw failed(provider, 'hints', thrownText(error), error);
  }
}

/** @throws ERR_HINT_PROVIDER */
export function askToAllocate(provider: HintProvider, request: HintRequest, hint: TopologyHint): void {
  call(provider, 'allocate', () => provider.allocate(request, hint));
}

function isAmount(value: unknown): value is NodeAmount {
  if (typeof value !== 'object' || value === null) return false;
  const { node, free, possible } = value as NodeAmount;
  return [node, free, possible].every((number) => Number.isFinite(number) && number >= 0);
}

/**
 * What a provider tells of a resource; nothing where it does not, or fails: the reason of a
 * rejection must not be lost.
 */
export function askForAmounts(
  provider: HintProvider | undefined,
  request: HintRequest,
  resource: string,
): NodeAmount[] {
  let amounts: unknown;
  try {
    amounts = provider?.amounts?.(request) ?? {};
    const list =
      (Object.hasOwn(amounts as object, resource) && (amounts as Record<string, unknown>)[resource]) || [];
    return [...(list as unknown[])]
      .filter(isAmount)
      .map(({ node, free, possible }) => ({ node, free, possible }));
  } catch {
    return [];
  } finally {
    abandon(amounts);
  }
}

/** Calls every one of them, whatever the others do. Answers the first error, ERR_HINT_PROVIDER. */
export function askToRelease(providers: readonly HintProvider[], request: ReleaseRequest): unknown {
  let first: unknown;
  for (const provider of providers) {
    try {
      call(provider, 'release', () => provider.release(request));
    } catch (error) {
      first ??= error;
    }
  }
  return first;
}
