// A chart of the rows that have a target: how long each takes as a part of what it may take. The
// target is the line in the middle.
import { bar, logScale, page } from './svg.mjs';
import { duration } from './units.mjs';

// Powers of ten to either side of the target.
const DECADES = 2;

// Of the target, or nothing where a row has none that is a time.
function partOf({ ratio, target, medianNs, targetNs }) {
  if (target !== undefined) return ratio / target;
  return targetNs === undefined ? undefined : medianNs / targetNs;
}

/** The SVG of a run's rows. */
export function targetsChart(rows, when) {
  const x = logScale(-DECADES, DECADES);
  const ticks = [];
  for (let decade = -DECADES; decade <= DECADES; decade++) {
    const label = decade === 0 ? 'target' : decade > 0 ? `${10 ** decade} x` : `1/${10 ** -decade}`;
    ticks.push({ at: x(10 ** decade), label, ...(decade === 0 && { color: '#333' }) });
  }
  const shown = rows.filter((row) => row.medianNs !== undefined && partOf(row) !== undefined);
  const drawn = shown.map((row) => ({
    label: `${row.scenario}: ${row.name}`,
    value: duration(row.medianNs),
    draw: (y) => [bar(x(10 ** -DECADES), x(partOf(row)), y, { color: row.met ? '#4a8f5c' : '#c0632f' })],
  }));
  return page('Medians as parts of their targets', when, ticks, drawn);
}
