// What the charts share: a page with a row for each label, and a logarithmic scale over it.

export const ROW = 22;
const WIDTH = 900;
const LABELS = 330;
const RIGHT = 90;
const TOP = 64;

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

const text = (x, y, content, attributes = '') =>
  `<text x="${x}" y="${y}"${attributes}>${escaped(content)}</text>`;

/** Where values are drawn between two powers of ten; what is beyond them, at the edge. */
export function logScale(from, to) {
  return (value) => {
    const exponent = Math.min(Math.max(Math.log10(value), from), to);
    return Number((LABELS + ((exponent - from) / (to - from)) * (WIDTH - LABELS - RIGHT)).toFixed(1));
  };
}

/** A bar from one place of the scale to another, as high as a share of its row. */
export function bar(from, to, y, { color, height = 0.64 }) {
  const top = y + (ROW * (1 - height)) / 2;
  return `<rect x="${from}" y="${top.toFixed(1)}" width="${Math.max(1, to - from).toFixed(1)}" height="${(ROW * height).toFixed(1)}" fill="${color}"/>`;
}

/**
 * The SVG.
 * @param when when and where it was measured
 * @param ticks lines through all rows: `{ at, label, color }`
 * @param rows `{ label, value, draw }`: what is written before and behind, and what is drawn at a
 *   height
 */
export function page(title, when, ticks, rows) {
  const height = TOP + rows.length * ROW + 12;
  const lines = ticks.flatMap(({ at, label, color = '#ddd' }) => [
    `<line x1="${at}" y1="${TOP - 6}" x2="${at}" y2="${height - 12}" stroke="${color}"/>`,
    text(at, TOP - 12, label, ' text-anchor="middle" fill="#666"'),
  ]);
  const drawn = rows.flatMap(({ label, value, draw }, i) => {
    const y = TOP + i * ROW;
    return [
      text(LABELS - 8, y + 15, label, ' text-anchor="end"'),
      ...draw(y),
      text(WIDTH - RIGHT + 8, y + 15, value),
    ];
  });
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="12">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(8, 18, title, ' font-size="13"'),
    text(8, 34, when, ' fill="#666"'),
    ...lines,
    ...drawn,
    '</svg>',
  ].join('\n')}\n`;
}
