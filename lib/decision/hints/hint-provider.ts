// HintProvider: a caller's own resource that takes part in admission. Checks the answers of
// providers.
import { checkOptions, invalidOption, isName, NAME, thrownText } from '../../base/check-options.js';
import { NumalignError } from '../../base/errors.js';
import { refusal } from '../../base/refusal.js';
import type { QosClass } from '../../input/pods/pod-resources.js';
import type { HintFamily, TopologyHint } from '../../machine/hints.js';
import { type ProviderHints, packHints } from './merge-hints.js';

/** How much of a resource a NUMA node has. */
export interface NodeAmount {
  /** The id of the NUMA node. */
  readonly node: number;
  /**
   * What the request could take now; whole cores only with `full-pcpus-only` and `hold-sibling`.
   */
  readonly free: number;
  /** What the node could give at most; for CPUs the managed ones that are not reserved. */
  readonly possible: number;
}

/** A request to a {@link HintProvider}. */
export interface HintRequest {
  /** The pod that asks. `name` is its uid if it has no other. */
  readonly pod: { readonly uid: string; readonly name: string; readonly qosClass: QosClass };
  /** The container; null for hints of the whole pod (scope `pod`). */
  readonly container: string | null;
  /**
   * `init`, `sidecar` (an init container that lasts as long as the pod) or `app`; null for hints of
   * the whole pod.
   */
  readonly kind: 'init' | 'sidecar' | 'app' | null;
  /**
   * Amounts by resource: `cpu` in millicores, others in whole units. For a pod, what it needs at
   * one time.
   */
  readonly requests: Readonly<Record<string, number>>;
  /**
   * The decision is only planned: the allocation will be released at once. The pod has a temporary
   * uid.
   */
  readonly dryRun: boolean;
}

/** A pod whose allocation a {@link HintProvider} releases. */
export interface ReleaseRequest {
  /** The pod, as {@link HintRequest.pod} had it. */
  readonly pod: { readonly uid: string; readonly name: string };
  /** Whether the allocation was only planned. */
  readonly dryRun: boolean;
}

/**
 * A provider of topology hints for your own resource, as the kubelet's managers are. numalign calls
 * its methods under the lock of the state: they must not wait or return a promise. If a method
 * throws, the admission is rolled back (ERR_HINT_PROVIDER). See docs/admission.md.
 */
export interface HintProvider {
  /**
   * Names the provider in errors and explanations: 1 to 253 printable characters, unique in its
   * manager. Read once.
   */
  readonly name: string;
  /**
   * Returns the hints of the request by resource; null: no preference. It must not change anything.
   */
  hints(request: HintRequest): ProviderHints;
  /** Allocates a container's request as near to the merged hint as possible. */
  allocate(request: HintRequest, hint: TopologyHint): void;
  /**
   * Releases the allocation of a pod: it was released by any process (this manager sees that at its
   * next transaction), its owner died, or its admission failed. It is also called for a pod without
   * an allocation, and again after it threw.
   */
  release(pod: ReleaseRequest): void;
  /** Optional: returns the amounts by resource, for the explanation of a rejection. */
  amounts?(request: HintRequest): Readonly<Record<string, readonly NodeAmount[]>>;
}

const METHODS = ['hints', 'allocate', 'release'] as const;

/** Checks a provider and keeps its current name. @throws ERR_INVALID_OPTION */
export function checkProvider(provider: unknown): HintProvider {
  if (typeof provider !== 'object' || provider === null)
    invalidOption('provider', provider, 'a HintProvider');
  const candidate = provider as HintProvider;
  const { name } = candidate;
  if (!isName(name)) invalidOption('name', name, NAME);
  for (const method of METHODS) {
    if (typeof candidate[method] !== 'function') invalidOption(method, candidate[method], 'a function');
  }
  const { amounts } = candidate;
  if (amounts !== undefined && typeof amounts !== 'function') invalidOption('amounts', amounts, 'a function');
  // An instance of a class may have more members.
  if (Object.getPrototypeOf(provider) === Object.prototype) {
    checkOptions(provider, ['name', ...METHODS, 'amounts'], 'a HintProvider');
  }
  return Object.freeze({
    name,
    hints: (request: HintRequest) => candidate.hints(request),
    allocate: (request: HintRequest, hint: TopologyHint) => candidate.allocate(request, hint),
    release: (pod: ReleaseRequest) => candidate.release(pod),
    amounts: (request: HintRequest) => candidate.amounts?.(request) ?? {},
  });
}

/**
 * Swallows promises in a refused answer: no caller waits for them, and a rejection must not end the
 * process.
 */
export function abandon(answer: unknown, depth = 2): void {
  if (typeof answer !== 'object' || answer === null) return;
  try {
    if (typeof (answer as { then?: unknown }).then === 'function') Promise.resolve(answer).catch(() => {});
    else if (depth > 0) for (const item of Object.values(answer)) abandon(item, depth - 1);
  } catch {
    // A getter threw. The answer is refused anyway.
  }
}

function failed({ name }: HintProvider, method: string, why: string, cause?: unknown): NumalignError {
  const message = `the hint provider ${name} failed in ${method}(): ${why}`;
  const details = { value: name, method, cause };
  return method === 'allocate'
    ? (refusal('UnexpectedAdmissionError', 'ERR_HINT_PROVIDER', message, details) as NumalignError)
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
 * The amounts that a provider reports for a resource. Empty if it reports none or fails, so that
 * the reason of a rejection is not lost.
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

/** Calls all providers, even if some fail. Returns the first error, ERR_HINT_PROVIDER. */
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
