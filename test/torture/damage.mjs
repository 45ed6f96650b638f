// Damage: single bits of a real state folder's files flipped and its files cut short, while another
// process owns grants. Whoever then opens the folder is never given a CPU of these, whether the
// state is refused or recovered.
//
//   npm run torture:damage -- --seed S [--sample N] [--bits] [--package DIR]
//
// `--sample`: as many damages of each kind, chosen by the seed; without it every byte (one bit of
// it, chosen by the seed; all with --bits) and every length.
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
import { decodeState, parseList } from './state-file.mjs';

// A prober's own owner files last as long as it does.
const PROBES_PER_PROCESS = 250;
const MAX_SHOWN = 10;
const script = (name) => fileURLToPath(new URL(name, import.meta.url));

const given = parseOptions('test/torture/damage.mjs', { seed: freshSeed(), sample: 0, bits: false });
const random = new Random(given.seed, 5);
const folder = scratchFolder('damage');
let stateDir = join(folder, 'state-0');
const packageFolder = resolve(given.packages[0]);

// ---- the process that owns

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
const pristine = new Map(
  ['state.json', 'state.copy.json'].map((name) => [name, readFileSync(join(stateDir, name))]),
);
const ownerFiles = new Map(
  readdirSync(join(stateDir, 'owners')).map((name) => [name, readFileSync(join(stateDir, 'owners', name))]),
);
const ownerName = [...ownerFiles].sort(([, a], [, b]) => b.length - a.length)[0][0];
// It lives, and does not put right what is damaged here.
owner.process.kill('SIGSTOP');
process.on('exit', () => owner.process.kill('SIGKILL'));

// ---- damage

// All files as they were; the locked ones in place, since the lock is on the file and not on its
// name.
function restore(forgetProber) {
  for (const name of readdirSync(stateDir)) {
    if (!['owners', 'lock'].includes(name)) rmSync(join(stateDir, name), { recursive: true, force: true });
  }
  for (const [name, bytes] of pristine) writeBeside(name, bytes);
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

const state = pristine.get('state.json');
const previous = pristine.get('state.copy.json');
const ownText = ownerFiles.get(ownerName);
const inOwners = (bytes) => writeFileSync(join(stateDir, 'owners', ownerName), bytes);
const some = given.sample > 0 ? given.sample : 400;

function* damages() {
  for (const bit of bitsOf(state))
    yield {
      what: `bit ${bit} of state.json flipped`,
      apply: () => writeBeside('state.json', flipped(state, bit)),
    };
  for (const length of chosen(state.length, given.sample)) {
    yield {
      what: `state.json cut to ${length} bytes`,
      apply: () => writeBeside('state.json', state.subarray(0, length)),
    };
  }
  // What is not needed may be damaged, and everything works.
  for (const bit of chosen(8 * previous.length, some)) {
    yield {
      what: `bit ${bit} of state.copy.json flipped`,
      mustOpen: true,
      apply: () => writeBeside('state.copy.json', flipped(previous, bit)),
    };
  }
  for (const bit of chosen(8 * previous.length, some)) {
    yield {
      what: `state.json cut in the middle and bit ${bit} of state.copy.json flipped`,
      apply() {
        writeBeside('state.json', state.subarray(0, state.length >> 1));
        writeBeside('state.copy.json', flipped(previous, bit));
      },
    };
  }
  for (const bit of chosen(8 * ownText.length, some)) {
    yield {
      what: `state.json empty and bit ${bit} of the owner's file flipped`,
      isKnown: false,
      apply() {
        writeBeside('state.json', Buffer.alloc(0));
        inOwners(flipped(ownText, bit));
      },
    };
  }
  for (const length of chosen(ownText.length, some)) {
    yield {
      what: `neither state and the owner's file cut to ${length} bytes`,
      isKnown: false,
      apply() {
        rmSync(join(stateDir, 'state.json'));
        rmSync(join(stateDir, 'state.copy.json'));
        inOwners(ownText.subarray(0, length));
      },
    };
  }
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

// `mustOpen`: nothing that is needed is damaged. `isKnown`: somewhere it still stands what the
// owner has; else nothing may be granted, but nobody can tell what is left for the shared pool.

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
  // Under another name the same folder is opened anew, by a process that has not seen it whole.
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
    // What was rebuilt is a state like any other.
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
  // Also by one who has seen it whole.
  if (given.sample > 0 || random.chance(8)) {
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
