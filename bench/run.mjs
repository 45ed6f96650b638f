// Runs benchmarks: npm run bench [-- NAME…] [--json FILE] and what a scenario takes. A scenario is
// a file of this folder that exports `description`, perhaps `options` (as node:util's parseArgs
// takes them, each with a `help`), `run(options, names)`, which gives rows: plain objects, `name`
// first, numbers as they are. `names` are those of the inputs that were asked for.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cpuTime, ownTime } from './support/machine-load.mjs';
import { inMarkdown, inTerminal, tablesOf } from './support/tables.mjs';
import { percent } from './support/units.mjs';

const folder = new URL('.', import.meta.url);
const scenarios = new Map();
for (const file of readdirSync(folder).sort()) {
  if (!file.endsWith('.mjs') || file === 'run.mjs') continue;
  scenarios.set(file.slice(0, -'.mjs'.length), await import(new URL(file, folder)));
}

const own = {
  json: { type: 'string', help: 'also write the rows to this file' },
  docs: {
    type: 'string',
    help: 'also write the tables into benchmarks.md of this folder',
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

/** What `action` answers; a wrong order is told and ends the program. */
function ordered(action) {
  try {
    return action();
  } catch (error) {
    return fail(error.message);
  }
}

const { values, positionals } = ordered(() => parseArgs({ options, allowPositionals: true }));
if (values.help) {
  console.log(usage());
  process.exit();
}
if (typeof globalThis.gc !== 'function') fail('start it by npm run bench, or with node --expose-gc');

const isInputAsked = positionals.some((name) => !scenarios.has(name)) || values.inputs !== undefined;
const inputs = isInputAsked ? ordered(() => scenarios.get('inputs').inputNames(values)) : [];
for (const name of positionals) {
  if (scenarios.has(name) || inputs.includes(name)) continue;
  fail(`there is no scenario and no input ${name}; inputs: ${inputs.join(', ')}`);
}
const asked = positionals.filter((name) => !scenarios.has(name));

// Nothing asked for: everything; of a folder of inputs, these.
function isAsked(name) {
  if (positionals.length === 0) return values.inputs === undefined || name === 'inputs';
  return positionals.includes(name) || (name === 'inputs' && asked.length > 0);
}

// A scenario that fails does not stop the others.
async function rowsOf(name, run) {
  try {
    return await run(values, asked);
  } catch (error) {
    return [{ name, code: error.code ?? 'ERR_SCENARIO', remark: error.message }];
  }
}

const MARKS = ['<!-- tables -->', '<!-- end of tables -->'];

/** The document that the tables go into: what is before and behind them. */
function documentOf(docs) {
  const file = join(docs, 'benchmarks.md');
  const text = readFileSync(file, 'utf8');
  const [begin, end] = MARKS.map((mark) => text.indexOf(mark));
  if (begin < 0 || end < begin) throw new Error(`${file}: there are no marks ${MARKS.join(' and ')}`);
  return { file, head: text.slice(0, begin + MARKS[0].length), tail: text.slice(end) };
}

if (values.docs !== undefined && positionals.length > 0) fail('--docs is of everything, without NAME');
const document = values.docs === undefined ? undefined : ordered(() => documentOf(values.docs));

// What part of the machine's CPUs others have from now on: where it is much, times are of a busy
// machine.
function lookAtOthers() {
  const [begin, before, own] = [performance.now(), cpuTime(), ownTime()];
  return () => {
    const now = cpuTime();
    const othersNs = now.busyNs - before.busyNs + now.stolenNs - before.stolenNs - (ownTime() - own);
    return Math.max(0, othersNs) / ((performance.now() - begin) * 1e6 * cpus().length);
  };
}

const machine = { cpu: cpus()[0]?.model, cpus: cpus().length, kernel: release(), node: process.version };
const date = new Date().toISOString();
const about = `${date.slice(0, 10)}: ${machine.cpus} CPUs (${machine.cpu}), Linux ${machine.kernel}, Node ${machine.node}`;
console.log(about);
const othersShare = lookAtOthers();
const all = [];
const tables = [];
for (const [name, { description, run }] of scenarios) {
  if (!isAsked(name)) continue;
  console.log(`\n${name}: ${description}`);
  const rows = await rowsOf(name, run);
  const shown = tablesOf(rows);
  for (const table of shown) console.log(`${inTerminal(table)}\n`);
  tables.push([`### ${name}`, `${description}.`, ...shown.map(inMarkdown)].join('\n\n'));
  all.push(...rows.map((row) => ({ scenario: name, ...row })));
}
const seconds = Math.round(performance.now() / 1000);
const failed = all.filter(({ code }) => code !== undefined);
const [met, missed] = [true, false].map((outcome) => all.filter((row) => row.met === outcome).length);
const others = othersShare();
const when = `${about}; others had ${percent(others)} of the CPUs`;
const summary = `${seconds} s, ${met} targets met, ${missed} missed${failed.length > 0 ? `, ${failed.length} failed` : ''}`;
console.log(`${when}\n${summary}`);

if (values.json !== undefined) {
  const result = { date, machine, seconds, othersShare: others, rows: all };
  writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`);
}
if (document !== undefined) {
  const text = [document.head, `Measured on ${when}; ${summary}.`, ...tables, document.tail].join('\n\n');
  writeFileSync(document.file, text);
}
if (failed.length > 0) process.exitCode = 1;
