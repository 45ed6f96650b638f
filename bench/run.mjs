// Runs benchmarks: npm run bench [-- NAME…] [--json FILE] and what a scenario takes. A scenario is a file of this folder that exports
// `description`, perhaps `options` (as node:util's parseArgs takes them, each with a `help`), and `run(options)`, which gives rows: plain objects, `name` first, numbers as they are.
import { readdirSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { parseArgs } from 'node:util';
import { table } from '../dist/cli/table.js';

const folder = new URL('.', import.meta.url);
const names = readdirSync(folder)
  .filter((file) => file.endsWith('.mjs') && file !== 'run.mjs')
  .map((file) => file.slice(0, -'.mjs'.length));
const scenarios = new Map();
for (const name of names) scenarios.set(name, await import(new URL(`${name}.mjs`, folder)));

const own = { json: { type: 'string', help: 'also write the rows to this file' }, help: { type: 'boolean' } };
const options = Object.assign({}, ...[...scenarios.values()].map((scenario) => scenario.options), own);

function usage() {
  const lines = ['npm run bench [-- NAME…] [options]', ''];
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

const cell = (value) =>
  value === null || value === undefined ? '-' : typeof value === 'number' ? value.toLocaleString('en') : String(value);

const { values, positionals } = parse();
if (values.help) {
  console.log(usage());
  process.exit();
}
for (const name of positionals) if (!scenarios.has(name)) fail(`there is no scenario ${name}`);

const machine = { cpu: cpus()[0]?.model, cpus: cpus().length, kernel: release(), node: process.version };
console.log(`${machine.cpus} CPUs (${machine.cpu}), Linux ${machine.kernel}, Node ${machine.node}`);
const all = [];
for (const [name, { description, run }] of scenarios) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  console.log(`\n${name}: ${description}`);
  const rows = await run(values);
  const titles = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns = titles.map((title) => ({ title }));
  const cells = rows.map((row) => titles.map((title) => cell(row[title])));
  console.log(table(columns, cells, { width: Number.POSITIVE_INFINITY }).join('\n'));
  all.push(...rows.map((row) => ({ scenario: name, ...row })));
}
if (values.json !== undefined) {
  writeFileSync(values.json, `${JSON.stringify({ date: new Date().toISOString(), machine, rows: all }, null, 2)}\n`);
}
