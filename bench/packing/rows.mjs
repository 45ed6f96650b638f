// The results of simulations as rows of a table: estimates from the samples.
import { estimate } from './estimate.mjs';

const FIGURES = {
  acceptedShare: ({ accepted, arrivals }) => accepted / arrivals,
  acceptedCpusShare: ({ cpusAccepted, cpusAsked }) => cpusAccepted / cpusAsked,
  utilisationShare: ({ cpuTime, span }, { cpus }) => cpuTime / (span * cpus),
  fragmentedShare: ({ fragmented, rejected }) => fragmented / rejected,
  avoidableShare: ({ avoidable, rejected }) => avoidable / rejected,
  moves: ({ moves, accepted }) => moves / accepted,
  distance: ({ distance, cpusAccepted }) => distance / cpusAccepted,
};

/** Compared with another way on the same requests. */
const CHANGES = {
  gainShare: (found, before, { cpus }) => (found.cpuTime - before.cpuTime) / (found.span * cpus),
  fragmentedRatio: (found, before) => found.fragmented / before.fragmented,
  avoidableRatio: (found, before) => found.avoidable / before.avoidable,
};

/**
 * @param samples the results of {@link simulate}, one for each sample
 * @param before those of the way that it is compared with; undefined for that way itself
 */
export function rowOf(name, samples, before, machine) {
  const row = { name };
  for (const [figure, of] of Object.entries(FIGURES))
    row[figure] = estimate(samples.map((found) => of(found, machine)));
  if (before === undefined) return row;
  for (const [figure, of] of Object.entries(CHANGES))
    row[figure] = estimate(samples.map((found, i) => of(found, before[i], machine)));
  return row;
}

/**
 * The row of a way beside that of the best that it could do: `reach` is its part of the bound's gain.
 */
export function withBound(row, bound) {
  return { ...row, reachShare: row.gainShare.mean / bound.gainShare.mean };
}
