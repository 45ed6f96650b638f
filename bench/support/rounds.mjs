// Measures asynchronous operations that change something, one by one and in turns.
import { emptyTimes, lowerQuartileOf, medianOf, row } from './measure.mjs';

export { cpuOf } from './cpu-time.mjs';

/** How long the action takes, in nanoseconds. */
export async function timeOf(action) {
  const begin = performance.now();
  await action();
  return (performance.now() - begin) * 1e6;
}

/** The current value of E. */
export const emptyNow = () => lowerQuartileOf(emptyTimes(500));

/** The times of an operation in each round, beside E and perhaps beside another yardstick. */
export class Rounds {
  #rounds = [];

  /** `others`: the yardstick's times in this round. */
  add(times, emptyNs, others) {
    this.#rounds.push({ times, emptyNs, others });
  }

  get costE() {
    return lowerQuartileOf(this.#rounds.map(({ times, emptyNs }) => medianOf(times) / emptyNs));
  }

  /** A row with its cost in E: the lower quartile of the rounds. */
  row(name, { yardstick = 'E', ...about } = {}) {
    const rounds = this.#rounds;
    const others = rounds.map(({ others, emptyNs }) => others ?? [emptyNs]);
    return {
      ...row(
        name,
        {
          samples: rounds.flatMap(({ times }) => times),
          others: others.flatMap((times) => [...times]),
          ratios: rounds.map(({ times }, i) => medianOf(times) / medianOf(others[i])),
        },
        { yardstick, ...about },
      ),
      costE: this.costE,
    };
  }
}
