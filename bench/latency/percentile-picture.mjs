// Times by percentile, as an SVG picture: a line for each way, on a logarithmic scale.
import { quantile } from '../support/measure.mjs';
import { duration } from '../support/units.mjs';

const SHARES = [0.5, 0.9, 0.99, 0.999, 1];
const TITLES = ['p50', 'p90', 'p99', 'p99.9', 'most'];
const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [760, 400, 70, 250, 20, 40];
const HUES = [130, 20, 265, 200, 330, 50];

const STYLE = `text{font:12px system-ui,sans-serif;fill:#24292f}.grid{stroke:#8c959f;stroke-opacity:.3}
path{fill:none;stroke-width:2}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}}`;

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** `ways`: each is a name and its times in nanoseconds. */
export function percentilePicture(ways) {
  const lines = ways.map(({ name, times }) => ({
    name,
    values: SHARES.map((share) => quantile(times, share)),
  }));
  const all = lines.flatMap(({ values }) => values);
  const [low, high] = [Math.floor(Math.log10(Math.min(...all))), Math.ceil(Math.log10(Math.max(...all)))];
  const x = (i) => LEFT + (i * (WIDTH - LEFT - RIGHT)) / (SHARES.length - 1);
  const y = (ns) => TOP + ((high - Math.log10(ns)) * (HEIGHT - TOP - BOTTOM)) / (high - low);
  const grid = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)).map(
    (ns) =>
      `<line class="grid" x1="${LEFT}" x2="${x(SHARES.length - 1)}" y1="${y(ns)}" y2="${y(ns)}"/>` +
      `<text x="${LEFT - 8}" y="${y(ns) + 4}" text-anchor="end">${duration(ns)}</text>`,
  );
  const titles = TITLES.map(
    (title, i) => `<text x="${x(i)}" y="${HEIGHT - 14}" text-anchor="middle">${title}</text>`,
  );
  // Names are placed at the ends of the lines, without overlap.
  const order = lines.map((_, i) => i).sort((a, b) => lines[b].values.at(-1) - lines[a].values.at(-1));
  const nameAt = (i) => TOP + 14 + order.indexOf(i) * 22;
  const drawn = lines.map(({ name, values }, i) => {
    const colour = `hsl(${HUES[i % HUES.length]},65%,45%)`;
    const points = values.map((ns, at) => `${x(at).toFixed(1)},${y(ns).toFixed(1)}`).join(' L');
    const [labelX, labelY] = [WIDTH - RIGHT + 50, nameAt(i)];
    const end = `${x(SHARES.length - 1)},${y(values.at(-1)).toFixed(1)}`;
    return `<path d="M${points}" stroke="${colour}"/><path d="M${end} L${labelX - 6},${labelY}" stroke="${colour}" stroke-width="1" stroke-dasharray="2 3"/><text x="${labelX}" y="${labelY + 4}">${escaped(name)}</text>`;
  });
  const label = `Time until an answer, by percentile: ${lines.map(({ name, values }) => `${name} ${duration(values[2])} at p99`).join('; ')}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" role="img">
<title>${escaped(label)}</title>
<style>${STYLE}</style>
${[...grid, ...titles, ...drawn].join('\n')}
</svg>
`;
}
