// A chart of the rows that have a target, as SVG: how long each takes as a part of what it may take. On a logarithmic scale, the target is the line in the middle.
const WIDTH = 860;
const LABELS = 330;
const ROW = 22;
const TOP = 64;
const RIGHT = 90;
// Powers of ten to either side of the target.
const DECADES = 2;

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

// Of the target, or nothing where a row has none that is a time.
function partOf({ ratio, target, medianNs, targetNs }) {
  if (target !== undefined) return ratio / target;
  return targetNs === undefined ? undefined : medianNs / targetNs;
}

function duration(ns) {
  const [unit, name] = [
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'µs'],
    [1, 'ns'],
  ].find(([least]) => ns >= least || least === 1);
  return `${Number((ns / unit).toPrecision(3))} ${name}`;
}

const x = (part) => {
  const bounded = Math.min(Math.max(Math.log10(part), -DECADES), DECADES);
  return LABELS + ((bounded + DECADES) / (2 * DECADES)) * (WIDTH - LABELS - RIGHT);
};

function scale(height) {
  const lines = [];
  for (let decade = -DECADES; decade <= DECADES; decade++) {
    const at = x(10 ** decade).toFixed(1);
    const label = decade === 0 ? 'target' : decade > 0 ? `${10 ** decade} x` : `1/${10 ** -decade}`;
    const color = decade === 0 ? '#333' : '#ddd';
    lines.push(`<line x1="${at}" y1="${TOP - 6}" x2="${at}" y2="${height - 12}" stroke="${color}"/>`);
    lines.push(`<text x="${at}" y="${TOP - 12}" text-anchor="middle" fill="#666">${label}</text>`);
  }
  return lines;
}

function bar(row, i) {
  const part = partOf(row);
  const y = TOP + i * ROW;
  const [from, to] = [x(10 ** -DECADES), x(part)];
  const label = `${row.scenario}: ${row.name}`;
  return [
    `<text x="${LABELS - 8}" y="${y + 13}" text-anchor="end">${escaped(label)}</text>`,
    `<rect x="${from}" y="${y + 3}" width="${Math.max(1, to - from).toFixed(1)}" height="${ROW - 8}" fill="${row.met ? '#4a8f5c' : '#c0632f'}"/>`,
    `<text x="${WIDTH - RIGHT + 8}" y="${y + 13}">${duration(row.medianNs)}</text>`,
  ];
}

/** The SVG of a run's rows. */
export function chart({ date, machine, rows }) {
  const shown = rows.filter((row) => row.medianNs !== undefined && partOf(row) !== undefined);
  const height = TOP + shown.length * ROW + 12;
  const title = `Medians as parts of their targets, ${date.slice(0, 10)}: ${machine.cpus} CPUs (${machine.cpu}), Linux ${machine.kernel}, Node ${machine.node}`;
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    `<text x="8" y="20" font-size="13">${escaped(title)}</text>`,
    ...scale(height),
    ...shown.flatMap(bar),
    '</svg>',
  ].join('\n')}\n`;
}
