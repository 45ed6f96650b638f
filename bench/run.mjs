// Runs benchmarks: npm run bench [-- NAME…] [--json FILE] and a scenario's options. A scenario is a
// file of this folder. It exports `description`, perhaps an `explanation` (Markdown) and `options`
// (for node:util's parseArgs, each with a `help`), and `run(options, names)`, which returns rows:
// plain objects, `name` first, plain numbers. `names` are the inputs to measure; with
// `options.check` it takes less time.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { cpus, release } from 'node:os';
import { dirname } from 'node:path';
import { parseArgs } from 'node:util';
import { comparison } from './support/comparison.mjs';
import { pageOf, sectionOf } from './support/document.mjs';
import { cpuTime, ownTime } from './support/machine-load.mjs';
import { measureLess } from './support/measure.mjs';
import { onPackages, packagesAt } from './support/packages.mjs';
import { leaveSettingsOut } from './support/settings.mjs';
import { inTerminal, tablesOf } from './support/tables.mjs';
import { judged, TARGETS, unmeasuredRows } from './support/targets.mjs';
import { percent } from './support/units.mjs';

leaveSettingsOut();
const folder = new URL('.', import.meta.url);
const scenarios = new Map();
for (const file of readdirSync(folder).sort()) {
  if (!file.endsWith('.mjs') || file === 'run.mjs') continue;
  scenarios.set(file.slice(0, -'.mjs'.length), await import(new URL(file, folder)));
}

const runnerOptions = {
  json: { type: 'string', help: 'also write the rows to this file' },
  docs: { type: 'string', help: 'also write the page of figures to this file' },
  check: {
    type: 'boolean',
    help: 'only what has targets, in less time; ends with 1 where one is missed',
  },
  package: {
    type: 'string',
    multiple: true,
    help: 'another build of the package, in its folder; several are compared',
  },
  turns: { type: 'string', help: 'how often each package is measured, in turns (default 3)' },
  help: { type: 'boolean' },
};
const options = Object.assign(
  {},
  ...[...scenarios.values()].map((scenario) => scenario.options),
  runnerOptions,
);

function usage() {
  const lines = ['npm run bench [-- NAME…] [options]', '', 'NAME is a scenario, or an input:', ''];
  for (const [name, { description }] of scenarios) lines.push(`  ${name.padEnd(16)}${description}`);
  lines.push('');
  for (const [name, { type, help }] of Object.entries(options)) {
    if (help) lines.push(`  ${`--${name}${type === 'string' ? ' …' : ''}`.padEnd(16)}${help}`);
  }
  return lines.join('\n');
}

function fail(message) {
  console.error(`bench: ${message}\n\n${usage()}`);
  process.exit(2);
}

/** The result of `action`; an invalid option is reported and ends the program. */
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
const inputNames = positionals.filter((name) => !scenarios.has(name));
const isOfTargets = values.check || values.package !== undefined;

// Without names: everything; with a folder of inputs, these; for a check or several builds, what
// has targets.
function isAsked(name) {
  if (isOfTargets && !(name in TARGETS)) return false;
  if (positionals.length === 0) return values.inputs === undefined || name === 'inputs';
  return positionals.includes(name) || (name === 'inputs' && inputNames.length > 0);
}

const names = [...scenarios.keys()].filter(isAsked);
const leftOut = positionals.filter((name) => !(name in TARGETS));
if (isOfTargets && leftOut.length > 0) {
  const valid = Object.keys(TARGETS).sort().join(', ');
  fail(
    `--check and --package are of scenarios that have targets, not of ${leftOut.join(', ')}; these: ${valid}`,
  );
}
if (values.docs !== undefined) {
  if (positionals.length > 0) fail('--docs covers everything: leave out NAME');
  for (const other of ['check', 'package', 'inputs']) {
    if (values[other] !== undefined) fail(`--docs does not go with --${other}`);
  }
  if (!existsSync(dirname(values.docs))) fail(`--docs ${values.docs}: its folder does not exist`);
}
if (values.check) measureLess();

// A scenario that fails does not stop the others.
async function rowsOf(name) {
  try {
    const rows = await scenarios.get(name).run(values, inputNames);
    return rows.map((row) => judged(name, row, { isTolerant: values.check }));
  } catch (error) {
    return [{ name, code: error.code ?? 'ERR_SCENARIO', remark: error.message }];
  }
}

// The part of the machine's CPU time that others use from now on. If it is large, the times are of
// a busy machine.
function lookAtOthers() {
  const [begin, before, ownBefore] = [performance.now(), cpuTime(), ownTime()];
  return () => {
    const now = cpuTime();
    const othersNs = now.busyNs - before.busyNs + now.stolenNs - before.stolenNs - (ownTime() - ownBefore);
    return Math.max(0, othersNs) / ((performance.now() - begin) * 1e6 * cpus().length);
  };
}

const machine = { cpu: cpus()[0]?.model, cpus: cpus().length, kernel: release(), node: process.version };
const date = new Date().toISOString();
const about = `${date.slice(0, 10)}: ${machine.cpus} CPUs (${machine.cpu}), Linux ${machine.kernel}, Node ${machine.node}`;
console.log(about);
const othersShare = lookAtOthers();
const when = () => `${about}; others had ${percent(othersShare())} of the CPUs`;

/** Prints the rows of a scenario, and returns its section of the page. */
function show(name, rows) {
  const scenario = scenarios.get(name);
  console.log(`\n${name}: ${scenario.description}`);
  const tables = tablesOf(rows);
  for (const table of tables) console.log(`${inTerminal(table)}\n`);
  return sectionOf(name, scenario, tables);
}

/** Runs each package in turn, in separate processes. */
function compare() {
  const packages = ordered(() => packagesAt(values.package));
  const turns = Number(values.turns ?? 3);
  if (!(Number.isInteger(turns) && turns > 0)) fail(`--turns ${values.turns}: a whole number above 0`);
  const labels = packages.map(({ label }) => label);
  const { package: _, turns: __, json, ...passed } = values;
  const args = Object.entries(passed).flatMap(([name, value]) =>
    value === true ? `--${name}` : [`--${name}`, value],
  );
  const all = [];
  for (const { scenario, rows } of onPackages(packages, names, args, turns)) {
    for (const { code, remark } of rows.flat(2)) {
      if (code === undefined) continue;
      console.error(`bench: ${scenario}: ${code}: ${remark}`);
      process.exitCode = 1;
    }
    show(scenario, comparison(scenario, rows, labels));
    all.push({ scenario, rows: Object.fromEntries(labels.map((label, i) => [label, rows[i]])) });
  }
  console.log(`${when()}. The best of ${turns} turns.`);
  if (json !== undefined) writeFileSync(json, `${JSON.stringify({ date, machine, all }, null, 2)}\n`);
}

// What takes longer or comes later is not measured again in a check.
const AGAIN = { mostMs: 20_000, untilMs: 200_000 };

/**
 * The rows of a scenario. In a check, rows that miss a target are measured a second time, since the
 * machine may have been busy.
 */
async function checkedRows(name) {
  const begin = performance.now();
  const rows = await rowsOf(name);
  const now = performance.now();
  const isQuick = now - begin <= AGAIN.mostMs && now <= AGAIN.untilMs;
  if (!values.check || !isQuick || rows.every(({ met }) => met !== false)) return rows;
  const again = new Map((await rowsOf(name)).map((row) => [row.name, row]));
  return rows.map((row) => (row.met === false && again.get(row.name)?.met ? again.get(row.name) : row));
}

async function measure() {
  const all = [];
  const sections = [];
  for (const name of names) {
    const rows = await checkedRows(name);
    sections.push(show(name, rows));
    all.push(...rows.map((row) => ({ scenario: name, ...row })));
    if (!values.check) continue;
    const code = 'ERR_UNMEASURED';
    for (const row of unmeasuredRows(name, rows)) all.push({ scenario: name, name: row, code });
  }
  const seconds = Math.round(performance.now() / 1000);
  const failed = all.filter(({ code }) => code !== undefined);
  const missed = all.filter(({ met }) => met === false);
  const met = all.filter((row) => row.met === true).length;
  const moment = when();
  const summary = `${seconds} s, ${met} targets met, ${missed.length} missed${failed.length > 0 ? `, ${failed.length} failed` : ''}`;
  console.log(`${moment}\n${summary}`);
  if (values.check) {
    for (const row of missed)
      console.log(`missed: ${row.scenario}: ${row.name}: ${row.missed?.join(', ') ?? ''}`);
    for (const row of failed) console.log(`failed: ${row.scenario}: ${row.name}: ${row.code}`);
  }
  if (values.json !== undefined) {
    const result = { date, machine, seconds, othersShare: othersShare(), rows: all };
    writeFileSync(values.json, `${JSON.stringify(result, null, 2)}\n`);
  }
  if (values.docs !== undefined) writeFileSync(values.docs, pageOf(`${moment}; ${summary}`, sections));
  if (failed.length > 0 || (values.check && missed.length > 0)) process.exitCode = 1;
}

if (values.package !== undefined) compare();
else await measure();
