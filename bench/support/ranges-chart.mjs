// A chart of how times are spread: for each row a bar from the median to the 99th percentile, a
// thin one to the 99.9th, and a mark at the greatest.
import { bar, logScale, page } from './svg.mjs';
import { duration } from './units.mjs';

// From 100 ns to 10 s.
const [FIRST, LAST] = [2, 10];

/** The SVG of rows with `medianNs`, `p99Ns`, `p999Ns` and `maxNs`. */
export function rangesChart(title, when, rows) {
  const x = logScale(FIRST, LAST);
  const ticks = [];
  for (let decade = FIRST; decade <= LAST; decade++)
    ticks.push({ at: x(10 ** decade), label: duration(10 ** decade) });
  const drawn = rows.map(({ name, medianNs, p99Ns, p999Ns, maxNs }) => ({
    label: name,
    value: duration(p99Ns),
    draw: (y) => [
      bar(x(medianNs), x(p99Ns), y, { color: '#3b6ea5' }),
      bar(x(p99Ns), x(p999Ns), y, { color: '#3b6ea5', height: 0.2 }),
      bar(x(maxNs) - 2, x(maxNs) + 2, y, { color: '#c0632f' }),
    ],
  }));
  return page(title, when, ticks, drawn);
}
