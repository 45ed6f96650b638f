// Runs benchmarks: npm run bench [-- NAME…] [--json FILE] and what a scenario takes. A scenario is a file of this folder that exports
// `description`, perhaps `options` (as node:util's parseArgs takes them, each with a `help`), and `run(options, names)`, which gives rows: plain objects, `name` first, numbers as they are.
// `names` are those of the inputs that were asked for.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { parseArgs } from 'node:util';
import { table } from '../dist/cli/table.js';
import { chart } from './support/chart.mjs';

const folder = new URL('.', import.meta.url);
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.mjs') && file !== 'run.mjs')
  .map((file) => file.slice(0, -'.mjs'.length));
const scenarios = new Map();
for (const name of names) scenarios.set(name, await import(new URL(`${name}.mjs`, folder)));

const own = {
  json: { type: 'string', help: 'also write the rows to this file' },
  chart: { type: 'string', help: 'also draw the rows that have a target, as SVG, to this file' },
  markdown: {
    type: 'string',
    help: 'also put the tables between the marks <!-- tables --> and <!-- end of tables --> of this file',
  },
  help: { type: 'boolean' },
};
const options = Object.assign({}, ...[...scenarios.values()].map((scenario) => scenario.options), own);

function usage() {
  const lines = ['npm run bench [-- NAME…] [options]', '', 'NAME is a scenario, or an input:', ''];
  for (const [name, { description }] of scenarios) lines.push(`  ${name.padEnd(14)}${description}`);
  lines.push('');
  for (const [name, { type, help }] of Object.entries(options)) {
    if (help) lines.push(`  ${`--${name}${type === 'string' ? ' …' : ''}`.padEnd(14)}${help}`);
  }
  return lines.join('\n');
}

function fail(message) {
  console.error(`bench: ${message}\n\n${usage()}`);
  process.exit(2);
}

function parse() {
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    return fail(error.message);
  }
}

const UNITS = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [0, 'ns'],
];

function duration(ns) {
  if (ns === undefined) return '-';
  const [unit, name] = UNITS.find(([least]) => Math.abs(ns) >= least);
  return `${Number((ns / (unit || 1)).toPrecision(3)).toLocaleString('en')} ${name}`;
}

const number = (value) => Number(value.toPrecision(3)).toLocaleString('en');

const share = (value) => (value === undefined ? '-' : value > 1 ? `${number(value)} times` : `1/${number(1 / value)}`);

// What is measured beside a yardstick.
const MEASURED = {
  name: (row) => row.name,
  median: (row) => duration(row.medianNs),
  p99: (row) => duration(row.p99Ns),
  bytes: (row) => (row.bytes === undefined ? '-' : Math.round(row.bytes).toLocaleString('en')),
  yardstick: (row) => (row.yardstick ? `${row.yardstick} ${duration(row.yardstickNs)}` : '-'),
  ratio: (row) => (row.ratio === undefined ? '-' : number(row.ratio)),
  target: ({ target, targetNs }) =>
    target !== undefined ? `<= ${number(target)}` : targetNs !== undefined ? `<= ${duration(targetNs)}` : '-',
  met: ({ met }) => (met === undefined ? '-' : met ? 'yes' : 'NO'),
  'of kubelet': ({ medianNs, kubeletNs }) => share(kubeletNs && medianNs / kubeletNs),
  remark: ({ remark }) => remark ?? '',
};

const cell = (value) =>
  value === null || value === undefined ? '-' : typeof value === 'number' ? value.toLocaleString('en') : String(value);

function tableOf(rows) {
  const isMeasured = rows.every((row) => 'medianNs' in row);
  const titles = isMeasured ? Object.keys(MEASURED) : [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => titles.map((title) => (isMeasured ? MEASURED[title](row) : cell(row[title]))));
  // Columns in which nothing is said.
  const said = titles.map((_, i) => cells.some((line) => line[i] !== '-' && line[i] !== ''));
  const shown = (list) => list.filter((_, i) => said[i]);
  return { titles: shown(titles), cells: cells.map(shown) };
}

function print({ titles, cells }) {
  const columns = titles.map((title) => ({ title }));
  console.log(table(columns, cells, { width: Number.POSITIVE_INFINITY }).join('\n'));
}

const line = (cells) => `| ${cells.join(' | ')} |`;

function markdownOf(name, description, { titles, cells }) {
  const head = [line(titles), line(titles.map(() => '---'))];
  return [`### ${name}`, '', `${description}.`, '', ...head, ...cells.map(line)].join('\n');
}

const MARKS = ['<!-- tables -->', '<!-- end of tables -->'];

function putInto(file, tables) {
  const text = readFileSync(file, 'utf8');
  const [begin, end] = MARKS.map((mark) => text.indexOf(mark));
  if (begin < 0 || end < begin) throw new Error(`--markdown ${file}: there are no marks ${MARKS.join(' and ')}`);
  const when = `Measured on ${date.slice(0, 10)}: ${about}.`;
  const middle = [MARKS[0], '', when, '', tables.join('\n\n'), '', ''].join('\n');
  writeFileSync(file, text.slice(0, begin) + middle + text.slice(end));
}

const { values, positionals } = parse();
if (values.help) {
  console.log(usage());
  process.exit();
}
if (typeof globalThis.gc !== 'function') fail('start it by npm run bench, or with node --expose-gc');

function inputNames() {
  try {
    return scenarios.get('inputs').inputNames(values);
  } catch (error) {
    return fail(error.message);
  }
}

const inputs = positionals.every((name) => scenarios.has(name)) ? [] : inputNames();
for (const name of positionals) {
  if (!scenarios.has(name) && !inputs.includes(name)) fail(`there is no scenario and no input ${name}`);
}
const asked = positionals.filter((name) => inputs.includes(name) && !scenarios.has(name));

// Nothing asked for: everything; of a folder of inputs, these.
function isAsked(name) {
  if (positionals.length === 0) return values.inputs === undefined || name === 'inputs';
  return positionals.includes(name) || (name === 'inputs' && asked.length > 0);
}

const machine = { cpu: cpus()[0]?.model, cpus: cpus().length, kernel: release(), node: process.version };
const about = `${machine.cpus} CPUs (${machine.cpu}), Linux ${machine.kernel}, Node ${machine.node}`;
const date = new Date().toISOString();
console.log(about);
const all = [];
const tables = [];
for (const [name, { description, run }] of scenarios) {
  if (!isAsked(name)) continue;
  console.log(`\n${name}: ${description}`);
  const rows = await run(values, asked);
  const shown = tableOf(rows);
  print(shown);
  tables.push(markdownOf(name, description, shown));
  all.push(...rows.map((row) => ({ scenario: name, ...row })));
}
const missed = all.filter(({ met }) => met === false);
if (all.some(({ met }) => met !== undefined)) {
  console.log(`\n${all.filter(({ met }) => met).length} targets met, ${missed.length} missed`);
}
const result = { date, machine, rows: all };
if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`);
if (values.chart !== undefined) writeFileSync(values.chart, chart(result));
if (values.markdown !== undefined) putInto(values.markdown, tables);
