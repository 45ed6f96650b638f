// Rows as tables: for a terminal, and in Markdown.
import { duration, number, percent } from './units.mjs';

const cell = (value) =>
  value === null || value === undefined
    ? '-'
    : typeof value === 'number'
      ? number(value)
      : Array.isArray(value)
        ? value.join(' ')
        : String(value);

const whole = (value) => (value === undefined ? '-' : Math.round(value).toLocaleString('en'));

const part = (value) =>
  value === undefined ? '-' : value > 1 ? `${number(value)} times` : `1/${number(1 / value)}`;

// The unit by the end of a member's name.
const UNITS = [
  [/Ns$/, duration],
  [/Bytes$/, (value) => `${number(value / 1e6)} MB`],
  [/E$/, (value) => `${number(value)} E`],
  [/Share$/, percent],
  [/^kubeletPart$/, part],
  [/^(bytes|calls|moreCalls|instructions|pairs|samples)$/, whole],
];

const unitOf = (member) => UNITS.find(([end]) => end.test(member));

const isEstimate = (value) => typeof value?.mean === 'number';

// The interval with only meaningful digits.
const estimateText = ({ mean, plusMinus }, text) =>
  !plusMinus ? text(mean) : `${text(mean)} ± ${text(Number(plusMinus.toPrecision(2)))}`;

/** A member of a row, in its unit. An estimate has its interval. */
export function memberText(member, value) {
  if (isEstimate(value)) return estimateText(value, (number) => memberText(member, number));
  const unit = typeof value === 'number' ? unitOf(member) : undefined;
  return unit === undefined ? cell(value) : unit[1](value);
}

/** A member as the title of a column: `loopShare` is `loop`, `wakeUps` is `wake ups`. */
export const titleOf = (member) =>
  member
    .replace(/(?<=.)(Ns|Bytes|Share)$/, '')
    .replace(/[A-Z](?=[a-z])/g, (letter) => ` ${letter.toLowerCase()}`);

/** The most that a member may be, or the least. */
export const goalText = (member, goal) =>
  goal.least === undefined ? `<= ${memberText(member, goal)}` : `>= ${memberText(member, goal.least)}`;

// The ratio already shows in the unit.
const NAMELESS = new Set(['ratio', 'costE', 'kubeletPart']);

/** The target of a row, as a text. */
function targetText({ target, targets }) {
  if (targets === undefined) {
    return target === undefined ? '-' : `<= ${number(target)}`;
  }
  return Object.entries(targets)
    .map(([member, goal]) => `${NAMELESS.has(member) ? '' : `${titleOf(member)} `}${goalText(member, goal)}`)
    .join('; ');
}

/** Whether a row meets its target; of several targets, those that it misses. */
function metText({ targets = {}, met, missed = [] }) {
  if (met === undefined) return '-';
  if (met) return 'yes';
  return Object.keys(targets).length > 1 ? `NO: ${missed.map(titleOf).join(', ')}` : 'NO';
}

// The columns that any row may have, after its own.
const JUDGEMENT = {
  target: targetText,
  met: metText,
  'of kubelet': ({ kubeletPart }) => part(kubeletPart),
  remark: ({ remark }) => remark ?? '',
};

// The columns of measurements, mostly beside a yardstick.
const MEASURED = {
  name: (row) => row.name,
  median: (row) => duration(row.medianNs),
  p99: (row) => duration(row.p99Ns),
  'p99.9': (row) => duration(row.p999Ns),
  most: (row) => duration(row.maxNs),
  samples: (row) => whole(row.samples),
  bytes: (row) => whole(row.bytes),
  yardstick: (row) => (row.yardstick ? `${row.yardstick} ${duration(row.yardstickNs)}` : '-'),
  ratio: (row) => cell(row.ratio),
  cost: (row) => (row.costE === undefined ? '-' : memberText('costE', row.costE)),
  ...JUDGEMENT,
};

// Members that judge, or belong to a column of JUDGEMENT.
const HIDDEN = new Set(['target', 'targets', 'met', 'missed', 'kubeletPart', 'remark']);

function tableOf(rows, columns) {
  const titles = Object.keys(columns);
  const cells = rows.map((row) => titles.map((title) => columns[title](row)));
  // Only columns with content.
  const hasContent = titles.map((_, i) => cells.some((line) => line[i] !== '-' && line[i] !== ''));
  const shown = (list) => list.filter((_, i) => hasContent[i]);
  return { titles: shown(titles), cells: cells.map(shown) };
}

/**
 * A table of the rows that are times, and one of the others, whose columns are their members; empty
 * tables are left out.
 */
export function tablesOf(rows) {
  const isMeasured = (row) => 'medianNs' in row;
  const others = rows.filter((row) => !isMeasured(row));
  const members = [...new Set(others.flatMap((row) => Object.keys(row)))].filter(
    (member) => !HIDDEN.has(member),
  );
  const memberColumns = members.map((member) => [titleOf(member), (row) => memberText(member, row[member])]);
  return [
    tableOf(rows.filter(isMeasured), MEASURED),
    tableOf(others, { ...Object.fromEntries(memberColumns), ...JUDGEMENT }),
  ].filter(({ cells }) => cells.length > 0);
}

export function inTerminal({ titles, cells }) {
  const lines = [titles, ...cells];
  const widths = titles.map((_, i) => Math.max(...lines.map((line) => line[i].length)));
  return lines
    .map((line) =>
      line
        .map((text, i) => text.padEnd(widths[i]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const line = (cells) => `| ${cells.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`;

export function inMarkdown({ titles, cells }) {
  return [line(titles), line(titles.map(() => '---')), ...cells.map(line)].join('\n');
}
