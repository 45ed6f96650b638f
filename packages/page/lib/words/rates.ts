// What happens on the CPUs of a grant, as rates. Pure.

/** Stands for what is unknown, or has no first interval. */
export const UNKNOWN = '-';

/** `null`: unknown. */
export type Amount = number | null;

function perSecond(amount: Amount, elapsedMs: number): Amount {
  return amount === null || elapsedMs === 0 ? null : (amount / elapsedMs) * 1000;
}

/** `3/s`. */
export function rateText(amount: Amount, elapsedMs: number): string {
  const rate = perSecond(amount, elapsedMs);
  return rate === null ? UNKNOWN : `${Math.round(rate)}/s`;
}

export function milliseconds(ns: number): string {
  const ms = ns / 1e6;
  return `${ms >= 100 ? Math.round(ms) : ms.toPrecision(2)} ms`;
}

/** How long threads waited for a CPU: `1.5 ms/s`. */
export function delayText(ns: Amount, elapsedMs: number): string {
  const rate = perSecond(ns, elapsedMs);
  return rate === null ? UNKNOWN : rate === 0 ? '0' : `${milliseconds(rate)}/s`;
}

/** How long threads ran, as a share of one CPU. */
export function runText(ns: Amount, elapsedMs: number): string {
  const rate = perSecond(ns, elapsedMs);
  return rate === null ? UNKNOWN : `${Math.round(rate / 1e7)}%`;
}
