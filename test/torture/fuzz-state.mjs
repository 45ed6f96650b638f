// Fuzzes the formats of the state file and of the owners' files: real files are mutated, as bytes
// and as structures, also with the checksum made right again. A decoder throws a NumalignError, or
// gives a value whose encoding decodes to the same; of a state the document's own reader must think
// alike.
//
//   npm run fuzz:state -- --seconds N --seed S [--package DIR]
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { freshSeed, parseOptions } from './options.mjs';
import { Random } from './random.mjs';
import { scratchFolder } from './scratch.mjs';
import { decodeState } from './state-file.mjs';

const SAMPLE = fileURLToPath(new URL('sample-state.mjs', import.meta.url));
const ARTIFACTS = fileURLToPath(new URL('../../build/torture/artifacts/', import.meta.url));
const MAX_FAILURES = 5;

const given = parseOptions('test/torture/fuzz-state.mjs', { seconds: 20, seed: freshSeed() });
const random = new Random(given.seed, 6);
const dist = join(resolve(given.packages[0]), 'dist');
const load = (path) => import(pathToFileURL(join(dist, path)));
const { NumalignError } = await load('base/errors.js');

// ---- the formats that this package has

const { decodeCheckpoint, encodeCheckpoint } = await load('state/format/journal.js');
const { decodeOwnerFile, encodeOwnerFile } = await load('state/format/owner-file.js');
const formats = [
  { name: 'state', decode: decodeCheckpoint, encode: encodeCheckpoint, folder: '.', agrees: decodeState },
  {
    name: 'owner',
    decode: decodeOwnerFile,
    encode: encodeOwnerFile,
    folder: 'owners',
    agrees: () => {},
  },
];

// ---- files to begin with

async function sampleFiles() {
  const folder = scratchFolder('fuzz');
  const stateDir = join(folder, 'state');
  const process_ = spawn(process.execPath, [SAMPLE, resolve(given.packages[0]), stateDir], {
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
  // While it lives it writes again what is removed.
  process_.stdin.end();
  await once(process_, 'exit');
  rmSync(folder, { recursive: true });
  return files;
}

const corpus = await sampleFiles();
const largest = Math.max(...corpus.flat().map((bytes) => bytes.length));

// Smaller ones, which are quicker to read: with a few of the grants, and with none.
for (const files of corpus) {
  const { checksum: _, ...body } = JSON.parse(files[0]);
  if (body.pods === undefined) continue;
  files.push(sealed({ ...body, pods: [], ...(body.memory && { memory: {} }) }));
  const small = body.pods
    .filter(({ containers }) => containers.every(({ memory }) => memory.length === 0))
    .slice(0, 1);
  if (small.length > 0) files.push(sealed({ ...body, pods: small, ...(body.memory && { memory: {} }) }));
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

// Every place in a value: its holder and the key there.
function places(value, found = []) {
  if (typeof value !== 'object' || value === null) return found;
  for (const key of Object.keys(value)) {
    found.push([value, key]);
    places(value[key], found);
  }
  return found;
}

// As an own member whatever it is called.
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

function changeOne(body) {
  const all = places(body);
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

function sealed(body) {
  const text = JSON.stringify(body).slice(0, -1);
  return Buffer.from(`${text},"checksum":"sha256:${createHash('sha256').update(text).digest('hex')}"}\n`);
}

function mutateStructure(bytes) {
  const { checksum: _, ...body } = JSON.parse(bytes);
  for (let left = 1 + random.below(4); left > 0; left--) changeOne(body);
  if (Object.keys(body).length === 0) return bytes;
  return sealed(body);
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

// Bytes changed below the checksum, which is then made right.
function mutateSealedBytes(bytes) {
  const copy = mutateBytes(bytes.subarray(0, bytes.lastIndexOf(',"checksum"')));
  const text = copy.toString('utf8');
  return Buffer.from(`${text},"checksum":"sha256:${createHash('sha256').update(text).digest('hex')}"}\n`);
}

// ---- what is required

/**
 * What is wrong with how a format takes these bytes; undefined where nothing is. Answers through
 * `seen` whether they were accepted.
 */
function flaw({ decode, encode, agrees }, bytes, seen) {
  let value;
  try {
    value = decode(bytes);
  } catch (error) {
    if (error instanceof NumalignError) return undefined;
    return `decoding throws ${error.stack}`;
  }
  // Of a newer format: read as far as it is known, never written.
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
    agrees(Buffer.from(text));
  } catch (error) {
    return `the document's reader does not take what was accepted: ${error.stack}`;
  }
  return undefined;
}

const end = Date.now() + given.seconds * 1000;
const begun = Date.now();
let [runs, accepted, failures] = [0, 0, 0];
while (Date.now() < end && failures < MAX_FAILURES) {
  for (let left = 100; left > 0; left--) {
    const which = random.below(formats.length);
    const format = formats[which];
    const mutate = random.pick([
      mutateStructure,
      mutateStructure,
      mutateStructure,
      mutateBytes,
      mutateSealedBytes,
    ]);
    const bytes = mutate(random.pick(corpus[which]));
    const seen = { accepted: false };
    const wrong = flaw(format, bytes, seen);
    runs++;
    if (seen.accepted) accepted++;
    // What was accepted is a file to go on from.
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
const seconds = (Date.now() - begun) / 1000;
console.log(
  `fuzz: seed ${given.seed}, ${formats.map(({ name }) => name).join(' and ')}, ${runs} executions, ${Math.round(runs / seconds)} a second, ${accepted} accepted, ${corpus.flat().length} files; ${failures} failures`,
);
process.exit(failures > 0 ? 1 : 0);
