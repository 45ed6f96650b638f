// Rows as tables: for a terminal, and in Markdown.
import { table } from '../../dist/cli/terminal/table.js';
import { duration, number } from './units.mjs';

const part = (value) =>
  value === undefined ? '-' : value > 1 ? `${number(value)} times` : `1/${number(1 / value)}`;

// The columns of what is measured, most of it beside a yardstick.
const MEASURED = {
  name: (row) => row.name,
  median: (row) => duration(row.medianNs),
  p99: (row) => duration(row.p99Ns),
  'p99.9': (row) => duration(row.p999Ns),
  most: (row) => duration(row.maxNs),
  samples: (row) => cell(row.samples),
  bytes: (row) => (row.bytes === undefined ? '-' : Math.round(row.bytes).toLocaleString('en')),
  yardstick: (row) => (row.yardstick ? `${row.yardstick} ${duration(row.yardstickNs)}` : '-'),
  ratio: (row) => (row.ratio === undefined ? '-' : number(row.ratio)),
  target: ({ target, targetNs }) =>
    target !== undefined ? `<= ${number(target)}` : targetNs !== undefined ? `<= ${duration(targetNs)}` : '-',
  met: ({ met }) => (met === undefined ? '-' : met ? 'yes' : 'NO'),
  'of kubelet': ({ medianNs, kubeletNs }) => part(kubeletNs && medianNs / kubeletNs),
  remark: ({ remark }) => remark ?? '',
};

const cell = (value) =>
  value === null || value === undefined
    ? '-'
    : typeof value === 'number'
      ? value.toLocaleString('en')
      : String(value);

function tableOf(rows, columns) {
  const titles = Object.keys(columns);
  const cells = rows.map((row) => titles.map((title) => columns[title](row)));
  // Columns in which nothing is said.
  const said = titles.map((_, i) => cells.some((line) => line[i] !== '-' && line[i] !== ''));
  const shown = (list) => list.filter((_, i) => said[i]);
  return { titles: shown(titles), cells: cells.map(shown) };
}

/**
 * A table of the rows that are times, and one of the others, which have the columns that their
 * members are; whichever there are.
 */
export function tablesOf(rows) {
  const isMeasured = (row) => 'medianNs' in row;
  const others = rows.filter((row) => !isMeasured(row));
  const titles = new Set(others.flatMap((row) => Object.keys(row)));
  const plain = Object.fromEntries([...titles].map((title) => [title, (row) => cell(row[title])]));
  return [tableOf(rows.filter(isMeasured), MEASURED), tableOf(others, plain)].filter(
    ({ cells }) => cells.length > 0,
  );
}

export function inTerminal({ titles, cells }) {
  const columns = titles.map((title) => ({ title }));
  return table(columns, cells, { width: Number.POSITIVE_INFINITY }).join('\n');
}

const line = (cells) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;

export function inMarkdown({ titles, cells }) {
  return [line(titles), line(titles.map(() => '---')), ...cells.map(line)].join('\n');
}
