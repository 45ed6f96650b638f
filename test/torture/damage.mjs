// Damage: flips single bits in the files of a real state folder, cuts the files short, and removes,
// swaps and doubles their lines, while another process owns grants. A process that then opens the
// folder never gets one of those CPUs, whether it refuses or recovers the state.
//
//   npm run torture:damage -- --seed S [--sample N] [--bits] [--package DIR]
//
// `--sample`: this many damages of each kind, chosen by the seed. Without it, every byte (one bit
// of each, chosen by the seed; all with --bits) and every length.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freshSeed, parseOptions } from './options.mjs';
import { Random } from './random.mjs';
import { scratchFolder } from './scratch.mjs';
import {
  decodeMembers,
  decodeState,
  encodeMembers,
  parseList,
  readHighest,
  writeHighest,
} from './state-file.mjs';

// The owner files of a prober last as long as the prober.
const PROBES_PER_PROCESS = 250;
const MAX_SHOWN = 10;
const script = (name) => fileURLToPath(new URL(name, import.meta.url));

const given = parseOptions('test/torture/damage.mjs', { seed: freshSeed(), sample: 0, bits: false });
const random = new Random(given.seed, 5);
const folder = scratchFolder('damage');
let stateDir = join(folder, 'state-0');
const packageFolder = resolve(given.packages[0]);

// ---- the owner

function start(name, ...args) {
  const process_ = spawn(process.execPath, [script(name), ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: process_.stdout })[Symbol.asyncIterator]();
  return {
    process: process_,
    async next() {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${name} has ended`);
      return JSON.parse(value);
    },
    async end() {
      const ended = process_.exitCode ?? once(process_, 'exit');
      process_.stdin.end();
      await ended;
    },
  };
}

const owner = start('sample-state.mjs', packageFolder, stateDir);
const { grants } = await owner.next();
const owned = new Set(Object.values(grants).flatMap(parseList));
// Some lines follow a whole state that has grants, as after a while of use.
const LINES = 4;
const written = linesOf(readFileSync(join(stateDir, 'state.json')));
const state = Buffer.concat([
  Buffer.from(encodeMembers(decodeMembers(Buffer.concat(written.slice(0, -LINES))))),
  ...written.slice(-LINES),
]);
const pristine = new Map([
  ['state.json', state],
  ['state.copy.json', state],
]);
const highest = readHighest(stateDir);
const ownerFiles = new Map(
  readdirSync(join(stateDir, 'owners')).map((name) => [name, readFileSync(join(stateDir, 'owners', name))]),
);
const ownerName = [...ownerFiles].sort(([, a], [, b]) => b.length - a.length)[0][0];
// The owner lives, but does not repair the damage.
owner.process.kill('SIGSTOP');
process.on('exit', () => owner.process.kill('SIGKILL'));

// ---- damage

// All files as they were. The locked ones stay in place, since a lock is on the file, not on its
// name.
function restore(forgetProber) {
  for (const name of readdirSync(stateDir)) {
    if (!['owners', 'lock'].includes(name)) rmSync(join(stateDir, name), { recursive: true, force: true });
  }
  for (const [name, bytes] of pristine) writeBeside(name, bytes);
  writeHighest(stateDir, highest);
  for (const name of readdirSync(join(stateDir, 'owners'))) {
    if (!ownerFiles.has(name) && forgetProber) rmSync(join(stateDir, 'owners', name));
  }
  for (const [name, bytes] of ownerFiles) writeFileSync(join(stateDir, 'owners', name), bytes);
}

function writeBeside(name, bytes) {
  writeFileSync(join(stateDir, `${name}.beside`), bytes, { mode: 0o600 });
  renameSync(join(stateDir, `${name}.beside`), join(stateDir, name));
}

function flipped(bytes, bit) {
  const copy = Buffer.from(bytes);
  copy[bit >> 3] ^= 1 << (bit & 7);
  return copy;
}

function chosen(count, of) {
  if (of === 0 || of >= count) return Array.from({ length: count }, (_, i) => i);
  return Array.from({ length: of }, () => random.below(count));
}

function bitsOf(bytes) {
  if (given.sample > 0) return chosen(8 * bytes.length, given.sample);
  if (given.bits) return chosen(8 * bytes.length, 0);
  return chosen(bytes.length, 0).map((byte) => 8 * byte + random.below(8));
}

const ownText = ownerFiles.get(ownerName);
const inOwners = (bytes) => writeFileSync(join(stateDir, 'owners', ownerName), bytes);
const some = given.sample > 0 ? given.sample : 400;

function linesOf(bytes) {
  const text = bytes.toString('latin1');
  return (text.match(/[^\n]*\n/g) ?? []).map((line) => Buffer.from(line, 'latin1'));
}

/** Each line removed, doubled, and swapped with each later one: { what, bytes }. */
function lineDamages(bytes) {
  const all = [...everyLineDamage(linesOf(bytes))];
  return given.sample > 0 ? chosen(all.length, given.sample).map((i) => all[i]) : all;
}

function* everyLineDamage(lines) {
  for (const [i, line] of lines.entries()) {
    yield { what: `line ${i} removed`, bytes: Buffer.concat(lines.toSpliced(i, 1)) };
    yield { what: `line ${i} doubled`, bytes: Buffer.concat(lines.toSpliced(i, 0, line)) };
    for (let other = i + 1; other < lines.length; other++) {
      const swapped = lines.with(i, lines[other]).with(other, line);
      yield { what: `lines ${i} and ${other} swapped`, bytes: Buffer.concat(swapped) };
    }
  }
}

function* bitDamages(bytes, bits) {
  for (const bit of bits) yield { what: `bit ${bit} flipped`, bytes: flipped(bytes, bit) };
}

function* cuts(bytes, count) {
  for (const length of chosen(bytes.length, count))
    yield { what: `cut to ${length} bytes`, bytes: bytes.subarray(0, length) };
}

/** `bits`: the bits to flip; `count`: the number of lengths. */
function* everyDamage(bytes, bits, count) {
  yield* bitDamages(bytes, bits);
  yield* cuts(bytes, count);
  yield* lineDamages(bytes);
}

const someDamage = (bytes) => everyDamage(bytes, chosen(8 * bytes.length, some), some);

// The lock file records what was committed; without it, living owners do.
function* withAndWithout(what, apply, more) {
  const isOne = given.sample > 0;
  const isFirst = random.chance(2);
  if (!isOne || isFirst) yield { what, apply, ...more };
  if (isOne && isFirst) return;
  yield {
    what: `${what}, no highest generation`,
    ...more,
    apply() {
      apply();
      writeHighest(stateDir);
    },
  };
}

function* damages() {
  // Damage in one of them is in the other too.
  for (const { what, bytes } of everyDamage(state, bitsOf(state), given.sample))
    yield* withAndWithout(`state.json: ${what}`, () => writeBeside('state.json', bytes), { mustOpen: true });
  for (const { what, bytes } of someDamage(state))
    yield {
      what: `state.copy.json: ${what}`,
      mustOpen: true,
      apply: () => writeBeside('state.copy.json', bytes),
    };
  // Then only the owner's file has the whole record.
  for (const { what, bytes } of someDamage(state))
    yield* withAndWithout(`both states: ${what}`, () => {
      writeBeside('state.json', bytes);
      writeBeside('state.copy.json', bytes);
    });
  for (const { what, bytes } of bitDamages(state, chosen(8 * state.length, some)))
    yield* withAndWithout(`state.json cut in the middle and state.copy.json: ${what}`, () => {
      writeBeside('state.json', state.subarray(0, state.length >> 1));
      writeBeside('state.copy.json', bytes);
    });
  for (const { what, bytes } of someDamage(ownText))
    yield { what: `the owner's file: ${what}`, mustOpen: true, apply: () => inOwners(bytes) };
  for (const { what, bytes } of someDamage(ownText))
    yield {
      what: `no state, and the owner's file: ${what}`,
      isKnown: false,
      apply() {
        rmSync(join(stateDir, 'state.json'));
        writeBeside('state.copy.json', Buffer.alloc(0));
        inOwners(bytes);
      },
    };
  yield { what: 'state.json gone', apply: () => rmSync(join(stateDir, 'state.json')) };
  yield {
    what: 'state.json a link',
    apply() {
      rmSync(join(stateDir, 'state.json'));
      symlinkSync('state.copy.json', join(stateDir, 'state.json'));
    },
  };
  yield {
    what: 'state.json a folder',
    apply() {
      rmSync(join(stateDir, 'state.json'));
      mkdirSync(join(stateDir, 'state.json'));
    },
  };
}

// ---- probes

// `mustOpen`: nothing that is needed is damaged. `isKnown`: a file still records the owner's
// grants; else nothing may be granted, but the size of the shared pool is unknown.

const violations = [];
const counts = { probes: 0, opened: 0, granted: 0, errors: new Map() };
let prober;

async function probe({ what, mustOpen = false, isKnown = true, apply }, isFresh) {
  if (counts.probes++ % PROBES_PER_PROCESS === 0) {
    await prober?.end();
    prober = start('prober.mjs', packageFolder);
    restore(true);
  } else {
    restore(false);
  }
  apply();
  // A process that has not read the whole folder opens it again under another name.
  if (isFresh) {
    const other = join(folder, `state-${counts.probes}`);
    renameSync(stateDir, other);
    stateDir = other;
  }
  prober.process.stdin.write(`${JSON.stringify({ stateDir })}\n`);
  const answer = await prober.next();
  const overlap = (list) => parseList(list).filter((cpu) => owned.has(cpu));
  const double = answer.given.flatMap(overlap);
  if (double.length > 0) violations.push(`${what}: CPUs ${double} were granted, which a living owner has`);
  if (isKnown && overlap(answer.pool).length > 0)
    violations.push(`${what}: CPUs ${overlap(answer.pool)} of a living owner are in the shared pool`);
  if (mustOpen && (answer.error || answer.refused))
    violations.push(`${what}: ${answer.error ?? answer.refused}`);
  if (!answer.error) counts.opened++;
  if (answer.given.length > 0) {
    counts.granted++;
    // A rebuilt state is like any other.
    try {
      decodeState(readFileSync(join(stateDir, 'state.json')));
    } catch (error) {
      violations.push(`${what}: the state that it left does not load: ${error.message}`);
    }
  }
  const error = answer.error ?? answer.refused;
  if (error) counts.errors.set(error, (counts.errors.get(error) ?? 0) + 1);
}

await probe({ what: 'nothing damaged', mustOpen: true, apply() {} }, true);
for (const damage of damages()) {
  await probe(damage, true);
  // A process that has read the whole file opens it too.
  if (random.chance(given.sample > 0 ? 3 : 8)) {
    restore(false);
    await probe({ what: 'nothing damaged', mustOpen: true, apply() {} }, false);
    await probe({ ...damage, what: `${damage.what}, after having been read whole` }, false);
  }
  if (violations.length >= MAX_SHOWN) break;
}
await prober.end();
owner.process.kill('SIGCONT');
await owner.end();
rmSync(folder, { recursive: true });

const errors = [...counts.errors].map(([code, n]) => `${code} ${n}`).join(', ');
console.log(
  `damage: seed ${given.seed}, ${state.length} bytes, ${counts.probes} probes, opened ${counts.opened}, granted ${counts.granted}; errors: ${errors || 'none'}`,
);
console.log(`${violations.length} violations`);
for (const violation of violations.slice(0, MAX_SHOWN)) console.log(`VIOLATION ${violation}`);
process.exit(violations.length > 0 ? 1 : 0);
