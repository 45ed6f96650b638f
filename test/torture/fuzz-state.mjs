// Fuzzes the formats of the state file and the owner files. It mutates lines of real files, as
// bytes and as structures, also with corrected checksums, and puts them among good ones. A decoder
// throws a NumalignError, or gives a value whose encoding decodes to the same value. For a state,
// the reader that follows the document must agree, and so must a reader that follows the file as it
// grows and is replaced.
//
//   npm run fuzz:state -- --seconds N --seed S [--package DIR]
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { crc32 } from 'node:zlib';
import { freshSeed, parseOptions } from './options.mjs';
import { modulesOf } from './package-modules.mjs';
import { Random } from './random.mjs';
import { scratchFolder } from './scratch.mjs';
import { decodeState } from './state-file.mjs';

const SAMPLE = fileURLToPath(new URL('sample-state.mjs', import.meta.url));
const ARTIFACTS = fileURLToPath(new URL('../../build/torture/artifacts/', import.meta.url));
const MAX_FAILURES = 5;

const given = parseOptions('test/torture/fuzz-state.mjs', { seconds: 20, seed: freshSeed() });
const random = new Random(given.seed, 6);
const load = modulesOf(resolve(given.packages[0]));
const { NumalignError } = await load('base/errors');

// ---- the formats of this package

const { decodeCheckpoint, encodeCheckpoint, encodeJournal, readJournal } = await load('state/format/journal');
const { decodeOwnerFile, encodeOwnerFile } = await load('state/format/owner-file');
const { JournalFollower } = await load('state/files/journal-follower');
const { openFolder } = await load('state/folder/folder');
const { isMoving } = await load('account/pod-holdings');
const { beginMove, callOffMove, finishMove, undoMove } = await load('decision/changes/move-steps');
const { heldCpus } = await load('account/cpus-of-pods');
const { moveTime } = await load('admission/transact');
const formats = [
  {
    name: 'state',
    decode: decodeCheckpoint,
    encode: encodeCheckpoint,
    folder: '.',
    agrees: decodeState,
    follows: followFlaw,
  },
  { name: 'owner', decode: decodeOwnerFile, encode: encodeOwnerFile, folder: 'owners' },
];

// ---- initial files

async function sampleFiles() {
  const folder = scratchFolder('fuzz');
  const stateDir = join(folder, 'state');
  const process_ = spawn(process.execPath, [SAMPLE, resolve(given.packages[0]), stateDir, 'moves'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await new Promise((done, failed) => {
    process_.stdout.once('data', done);
    process_.once('exit', () => failed(new Error('no sample was written')));
  });
  const files = formats.map(({ folder: sub }) => {
    const names = readdirSync(join(stateDir, sub)).filter((name) => sub !== '.' || name.endsWith('.json'));
    return names.map((name) => readFileSync(join(stateDir, sub, name)));
  });
  // While the owner lives, it restores files that are removed.
  process_.stdin.end();
  await once(process_, 'exit');
  rmSync(folder, { recursive: true });
  return files;
}

const corpus = await sampleFiles();
const largest = Math.max(...corpus.flat().map((bytes) => bytes.length));

// Smaller files, which are quicker to read: the same ones some lines earlier.
for (const [which, files] of corpus.entries()) {
  const lines = linesOf(files[0]);
  for (let count = 2; count < lines.length; count++) files.push(joined(which, lines.slice(0, count)));
}

// ---- mutations

const ODD_NUMBERS = [
  0,
  -0,
  -1,
  0.5,
  1,
  2,
  7,
  62,
  63,
  64,
  65,
  127,
  128,
  255,
  1023,
  1024,
  4095,
  4096,
  65_536,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
  1e300,
];
const ODD_TEXTS = [
  '',
  '0',
  '0-3',
  '3-0',
  '1-',
  ',',
  '0-999999999',
  '18446744073709551616',
  '4096',
  '0-4095',
  '../x',
  'a/b',
  '\u0000',
  '\uFFFD',
  '\uD800',
  'é',
  '__proto__',
  'toString',
  'process',
  'cgroup',
  'persistent',
  'recorded',
  'init',
  'app',
];
const ODD_KEYS = [
  '__proto__',
  'toString',
  'constructor',
  'future',
  '',
  'checksum',
  'format',
  'version',
  'unknown',
  '0',
  'cpus',
  'pods',
  'upcoming',
  'move',
  'movable',
  'moves',
  'mixed',
  'target',
  'transfer',
];
const oddValue = () =>
  random.pick([
    null,
    true,
    false,
    [],
    {},
    [[]],
    random.pick(ODD_NUMBERS),
    random.pick(ODD_TEXTS),
    [random.pick(ODD_NUMBERS)],
    { [random.pick(ODD_KEYS)]: random.pick(ODD_TEXTS) },
  ]);

// Every place in a value: its container and its key.
function places(value, found = []) {
  if (typeof value !== 'object' || value === null) return found;
  for (const key of Object.keys(value)) {
    found.push([value, key]);
    places(value[key], found);
  }
  return found;
}

/** A place and all places below it. */
const within = ([holder, key]) => [[holder, key], ...places(holder[key])];

// As an own member, whatever the key.
const put = (holder, key, value) =>
  Object.defineProperty(holder, key, { value, enumerable: true, writable: true, configurable: true });

function nearby(value) {
  if (typeof value === 'number') return value + random.pick([-1, 1, 2, 4096, -value, value]);
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string')
    return random.pick([
      value + value,
      value.slice(1),
      value.slice(0, -1),
      `${value},${random.below(30)}`,
      value.toUpperCase(),
      String(random.below(30)),
      `${random.below(10)}-${random.below(30)}`,
    ]);
  return oddValue();
}

// Members of moves and the shared pool: one change in three is among them.
const isOfMoves = ([holder, key]) => OF_MOVES.has(key) || holder.deadline !== undefined;
const OF_MOVES = new Set(['mixed', 'movable', 'moves', 'upcoming', 'exclude', 'maxPerHour', 'noticeMs']);

function changeOne(body) {
  const everything = places(body);
  const ofMoves = random.chance(3) ? everything.filter(isOfMoves).flatMap(within) : [];
  const all = ofMoves.length > 0 ? ofMoves : everything;
  const [holder, key] = random.pick(all);
  const [otherHolder, otherKey] = random.pick(all);
  switch (random.below(8)) {
    case 0:
      if (Array.isArray(holder)) holder.splice(Number(key), 1);
      else delete holder[key];
      return;
    case 1:
      put(holder, key, oddValue());
      return;
    case 2:
      put(holder, key, structuredClone(otherHolder[otherKey]));
      return;
    case 3:
      if (Array.isArray(holder)) holder.splice(Number(key), 0, structuredClone(holder[key]));
      else put(holder, random.pick(ODD_KEYS), structuredClone(holder[key]));
      return;
    case 4:
      if (Array.isArray(holder)) holder.push(oddValue());
      else put(holder, random.pick(ODD_KEYS), oddValue());
      return;
    default:
      put(holder, key, nearby(holder[key]));
  }
}

// ---- lines

function linesOf(bytes) {
  return (bytes.toString('latin1').match(/[^\n]*\n|[^\n]+$/g) ?? []).map((line) =>
    Buffer.from(line, 'latin1'),
  );
}

function sealedText(text) {
  // As UTF-8, whatever bytes the change put into it.
  const body = Buffer.from(text.toString());
  return Buffer.concat([
    body,
    Buffer.from(`,"checksum":"crc32:${crc32(body).toString(16).padStart(8, '0')}"}\n`),
  ]);
}

function sealed(body) {
  return sealedText(JSON.stringify(body).slice(0, -1));
}

/** The content of a line without its checksum; undefined if it is not a JSON object. */
function bodyOf(line) {
  try {
    const { checksum: _, ...body } = JSON.parse(line);
    return Object.keys(body).length === 0 ? undefined : body;
  } catch {
    return undefined;
  }
}

// A file of these lines, with corrected lengths and checksums.
function joined(which, lines) {
  const [first, second] = lines;
  const head = first && bodyOf(first);
  if (formats[which].name === 'state') {
    if (!head || !second) return Buffer.concat(lines);
    return Buffer.concat([sealed({ ...head, bytes: second.length }), ...lines.slice(1)]);
  }
  const body = lines.filter((line) => bodyOf(line)?.lines === undefined);
  return Buffer.concat([...body, sealed({ lines: String(body.length).padStart(10, '0') })]);
}

function mutateStructure(line) {
  const body = bodyOf(line);
  if (!body) return line;
  for (let left = 1 + random.below(4); left > 0; left--) if (Object.keys(body).length > 0) changeOne(body);
  return Object.keys(body).length === 0 ? line : sealed(body);
}

// Bytes changed before the checksum, which is then corrected.
const mutateSealedBytes = (line) =>
  sealedText(mutateBytes(line.subarray(0, Math.max(0, line.lastIndexOf(',"checksum"')))));

const mutateLine = (line) =>
  random.pick([mutateStructure, mutateStructure, mutateStructure, mutateBytes, mutateSealedBytes])(line);

// Lines removed, doubled, moved, from another file, or of the next generation.
function mutateLines(lines, others) {
  const at = random.below(lines.length);
  switch (random.below(5)) {
    case 0:
      return lines.toSpliced(at, 1);
    case 1:
      return lines.toSpliced(at, 0, lines[at]);
    case 2:
      return lines.toSpliced(at, 1).toSpliced(random.below(lines.length), 0, lines[at]);
    case 3:
      return lines.toSpliced(at, random.below(2), random.pick(others));
    default: {
      const body = bodyOf(lines.at(-1));
      if (body?.generation === undefined) return lines;
      return [...lines, sealed({ ...body, line: 'change', generation: body.generation + 1 })];
    }
  }
}

function mutate(which, bytes) {
  if (random.chance(6)) return mutateBytes(bytes);
  let lines = linesOf(bytes);
  for (let left = 1 + random.below(3); left > 0 && lines.length > 0; left--) {
    if (random.chance(3)) lines = mutateLines(lines, linesOf(random.pick(corpus[which])));
    else {
      const at = random.below(lines.length);
      lines = lines.with(at, mutateLine(lines[at]));
    }
  }
  return random.chance(6) ? Buffer.concat(lines) : joined(which, lines);
}

function mutateBytes(bytes) {
  let copy = Buffer.from(bytes);
  for (let left = 1 + random.below(4); left > 0; left--) {
    const at = random.below(copy.length || 1);
    switch (random.below(5)) {
      case 0:
        if (copy.length > 0) copy[at] ^= 1 << random.below(8);
        break;
      case 1:
        copy = copy.subarray(0, at);
        break;
      case 2:
        copy = Buffer.concat([copy.subarray(0, at), copy.subarray(at + random.below(20))]);
        break;
      case 3:
        copy = Buffer.concat([copy.subarray(0, at), Buffer.from(random.pick(ODD_TEXTS)), copy.subarray(at)]);
        break;
      case 4:
        copy = Buffer.concat([copy.subarray(0, at), copy.subarray(random.below(copy.length || 1))]);
    }
  }
  return copy;
}

// ---- requirements

/**
 * What a format does wrong with these bytes; undefined if nothing. Reports through `seen` if they
 * were accepted.
 */
function flaw({ decode, encode, agrees, follows }, bytes, seen) {
  let value;
  try {
    value = decode(bytes);
  } catch (error) {
    if (!(error instanceof NumalignError)) return `decoding throws ${error.stack}`;
    return follows?.(bytes);
  }
  // A newer format: the known part is read, and it is never written.
  if (value.refusal instanceof NumalignError) return undefined;
  seen.accepted = true;
  let again;
  const text = encode(value);
  try {
    again = decode(Buffer.from(text));
  } catch (error) {
    return `what it decoded cannot be decoded again: ${error.message}`;
  }
  if (!isDeepStrictEqual(value, again)) return 'what it decoded decodes to something else once it is encoded';
  if (encode(again) !== text) return 'what it decoded is encoded differently the second time';
  try {
    const [read, readAgain] = [bytes, Buffer.from(text)].map((each) => agrees && gistOf(agrees(each)));
    if (!isDeepStrictEqual(read, readAgain)) return "the document's reader reads something else";
  } catch (error) {
    return `the document's reader does not take what was accepted: ${error.stack}`;
  }
  return (agrees && moveFlaw(value)) ?? follows?.(bytes);
}

/** What is wrong with how moves under way end, at any point of their records. */
function moveFlaw(value) {
  const state = value.assignments;
  const time = moveTime(new Date('2026-01-01T00:00:00.000Z'));
  for (const pod of state.pods.filter(isMoving)) {
    try {
      if (!pod.upcoming.move.target) checkStep(state, finishMove(state, pod, time));
      else {
        checkStep(state, callOffMove(state, pod));
        const begun = beginMove(state, pod, pod.upcoming.by);
        checkStep(state, begun);
        checkStep(state, undoMove(begun, pod, 'ERR_NOT_MOVED'));
        checkStep(state, finishMove(begun, begun.pods.find(isSameUid(pod)), time));
      }
    } catch (error) {
      return `a step of the move of ${pod.uid}: ${error.stack}`;
    }
  }
  return undefined;
}

const isSameUid =
  ({ uid }) =>
  (pod) =>
    pod.uid === uid;

// No step gives a grant anything that no grant on record holds.
function checkStep(before, after) {
  const [held, now] = [before, after].map(({ pods }) => heldCpus(pods));
  if (!now.isDisjoint) throw new Error('two grants have the same CPU');
  if (!now.cpus.isSubsetOf(held.cpus)) throw new Error(`CPUs ${now.cpus} are held, ${held.cpus} before`);
}

// Without members that may be written in several ways.
const gistOf = ({ generation, bootId, memory, cpus, pods }) => ({
  ...{ generation, bootId, memory, cpus },
  pods: [...pods.values()].map(({ uid, keys, terms }) => ({ uid, keys, terms })),
});

/** What a reader that follows a file does wrong; undefined if nothing. */
function followFlaw(bytes) {
  const lines = linesOf(bytes);
  const file = join(followed.path, 'state.json');
  rmSync(file, { force: true });
  const follower = new JournalFollower(followed.folder);
  try {
    // Whole lines one by one, sometimes half of one, and in between another file in its place.
    let written = Buffer.concat(lines.slice(0, 2));
    writeFileSync(file, written);
    for (let at = 2; ; at++) {
      const wrong = lookFlaw(follower, file);
      if (wrong !== undefined) return `after ${at} lines: ${wrong}`;
      if (at >= lines.length) return undefined;
      const { good } = follower;
      if (good && random.chance(4)) {
        appendFileSync(file, lines[at].subarray(0, random.below(lines[at].length)));
        const torn = lookFlaw(follower, file);
        if (torn !== undefined) return `with a part of line ${at}: ${torn}`;
        truncateSync(file, written.length);
      }
      if (good && !good.place.hasTail && random.chance(4)) {
        // A compaction together with the next line, which may follow a line that the reader missed.
        const isUnseen = random.chance(2) && at + 1 < lines.length;
        if (isUnseen) appendFileSync(file, lines[at++]);
        const now = judged(file);
        if (now?.checkpoint && !now.place.hasTail) {
          written = encodeJournal(now.checkpoint, now.place.seal).bytes;
          writeFileSync(`${file}.new`, Buffer.concat([written, lines[at]]));
          renameSync(`${file}.new`, file);
          written = Buffer.concat([written, lines[at]]);
          continue;
        }
        if (isUnseen) at--;
        truncateSync(file, written.length);
      }
      written = Buffer.concat([written, lines[at]]);
      appendFileSync(file, lines[at]);
    }
  } finally {
    follower.forget();
  }
}

// What the file says if it is read whole; undefined if it is refused.
function judged(file) {
  try {
    return readJournal(readFileSync(file));
  } catch (error) {
    if (error instanceof NumalignError) return undefined;
    throw error;
  }
}

function lookFlaw(follower, file) {
  const whole = judged(file);
  let found;
  try {
    found = follower.look();
  } catch (error) {
    if (!(error instanceof NumalignError)) return `following throws ${error.stack}`;
  }
  if ((found?.kind === 'good') !== (whole !== undefined))
    return `a follower finds ${found?.kind} (${found?.why}), a reader of the whole file ${whole ? 'good' : 'damaged'}`;
  if (!whole) return undefined;
  const { refusal: _1, ...ofWhole } = whole.checkpoint;
  const { refusal: _2, ...ofFollower } = found.checkpoint;
  if (!isDeepStrictEqual(ofFollower, ofWhole)) return 'a follower reads something else';
  const { end, seal, hasTail } = found.place;
  const there = whole.place;
  if (end !== there.end || seal !== there.seal || hasTail !== there.hasTail)
    return `a follower is at ${JSON.stringify(found.place)}, a reader of the whole file at ${JSON.stringify(there)}`;
  return undefined;
}

const scratch = scratchFolder('fuzz-follow');
const followed = {
  path: join(scratch, 'state'),
  folder: openFolder(join(scratch, 'state'), 'private').folder,
};
const end = Date.now() + given.seconds * 1000;
const begun = Date.now();
let [runs, accepted, failures] = [0, 0, 0];
while (Date.now() < end && failures < MAX_FAILURES) {
  for (let left = 100; left > 0; left--) {
    const which = random.below(formats.length);
    const format = formats[which];
    const bytes = mutate(which, random.pick(corpus[which]));
    const seen = { accepted: false };
    const wrong = flaw(format, bytes, seen);
    runs++;
    if (seen.accepted) accepted++;
    // An accepted file is a start for further changes.
    if (
      seen.accepted &&
      !wrong &&
      bytes.length < 2 * largest &&
      corpus[which].length < 500 &&
      random.chance(20)
    )
      corpus[which].push(bytes);
    if (wrong === undefined) continue;
    failures++;
    mkdirSync(ARTIFACTS, { recursive: true });
    const artifact = join(
      ARTIFACTS,
      `${format.name}-${createHash('sha256').update(bytes).digest('hex').slice(0, 16)}`,
    );
    writeFileSync(artifact, bytes);
    console.log(`VIOLATION ${format.name}: ${wrong}\n    the bytes: ${artifact}`);
  }
}
rmSync(scratch, { recursive: true });
const seconds = (Date.now() - begun) / 1000;
console.log(
  `fuzz: seed ${given.seed}, ${formats.map(({ name }) => name).join(' and ')}, ${runs} executions, ${Math.round(runs / seconds)} a second, ${accepted} accepted, ${corpus.flat().length} files; ${failures} failures`,
);
process.exit(failures > 0 ? 1 : 0);
