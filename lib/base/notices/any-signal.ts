// anySignal: AbortSignal.any() that lasts.

const sources = new WeakMap<AbortSignal, readonly AbortSignal[]>();

/**
 * Aborts once one of these does, with its reason. AbortSignal.any() of Node 20 does not keep its
 * sources: after a garbage collection, one such as AbortSignal.timeout() never aborts.
 */
export function anySignal(...signals: readonly AbortSignal[]): AbortSignal {
  const any = AbortSignal.any([...signals]);
  sources.set(any, signals);
  return any;
}
