// Lost writes: opens the state folders that a power cut could leave at every step of the
// transactions.
//
//   npm run torture:lost-writes -- [--package DIR]
//
// An image must have the whole generation before the running transaction or the one after it; once
// a transaction was acknowledged, the one after it. Ends with 1 if an image has another, or does
// not open.
import { spawn, spawnSync } from 'node:child_process';
import { createHash, randomInt, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { isLong } from '../support/budget.mjs';
import { Disk } from './disk.mjs';
import { parseOptions } from './options.mjs';
import { scratchFolder } from './scratch.mjs';
import { shimEnvironment } from './shim.mjs';
import { decodeState, parseList, readState } from './state-file.mjs';

const PROMISING = new Set(['.', 'archive', 'quarantine']);
// The images of its steps are like those of other steps.
const BULK = 'bulk';
// By default one of this many lengths of the last write.
const LENGTHS = isLong ? 1 : 61;
const OPENED_PER_PROCESS = 250;
const MAX_SHOWN = 10;
const script = (name) => fileURLToPath(new URL(name, import.meta.url));

const { packages } = parseOptions('test/torture/lost-writes.mjs', {});
// Memory does not survive a boot.
const folder = scratchFolder('lost-writes', tmpdir());
const memory = scratchFolder('lost-writes');
const stateDir = join(folder, 'state');
const trace = join(folder, 'trace');
const boots = ['first', 'after reboot'].map((part) => {
  const file = join(folder, `boot-id of ${part}`);
  const id = randomUUID();
  writeFileSync(file, `${id}\n`);
  return { part, file, id };
});

// ---- the trace

for (const { part, file } of boots) {
  const setup = JSON.stringify({ package: resolve(packages[0]), stateDir, trace, part });
  const env = { ...process.env, ...shimEnvironment({ folder: stateDir, trace, bootId: file }) };
  const { status, stderr } = spawnSync(process.execPath, [script('writer.mjs'), setup], {
    env,
    encoding: 'utf8',
  });
  if (status !== 0) {
    console.error(`the writer failed:\n${stderr}`);
    for (const path of [folder, memory]) rmSync(path, { recursive: true });
    process.exit(1);
  }
}
const lines = readFileSync(trace, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));

// ---- the images

function describe({ generation, bootId, pods }) {
  const list = [...pods.values()].map(({ uid, keys, owner }) => ({
    uid,
    keys: [...keys].sort(),
    kind: owner.kind,
  }));
  return { generation, bootId, pods: list, text: JSON.stringify([generation, bootId, list]) };
}

// By its bytes: { files, where, allowed: texts of states }. An image that is met again under
// stricter rules must obey them too.
const images = new Map();
const violations = [];
let opened = 0;
let lengths = 0;
const firstLength = randomInt(LENGTHS);
const steps = new Map();

// `undefined` among the allowed texts: no state at all.
function collect(disk, step, at, allowed, boot) {
  steps.set(step, (steps.get(step) ?? 0) + 1);
  for (const { files, how, isLength } of disk.images(PROMISING)) {
    if (isLength && lengths++ % LENGTHS !== firstLength) continue;
    const hash = createHash('sha256').update(boot.id);
    for (const [path, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1)))
      hash.update(path).update('\0').update(bytes).update('\0');
    const key = `${hash.digest('hex')} ${allowed.map((state) => state?.generation)}`;
    if (images.has(key)) continue;
    const image = { files, where: `${step}, ${at}: ${how}`, allowed, boot };
    image.state = checkFile(image);
    images.set(key, image);
    // Without any sync, the images are endless.
    if (violations.length >= MAX_SHOWN) return;
  }
}

// A line at the end of the file commits, and so does the rename of a file to this name.
const mayCommit = ({ op, path }) => path === 'state.json' && ['rename', 'write'].includes(op);

// All states that were put in place, the latest last. A step may take several transactions, each
// acknowledged before the next began.
const committed = [undefined];
function note(disk, step) {
  try {
    const state = describe(decodeState(disk.read('state.json')));
    if (state.generation !== committed.at(-1)?.generation) committed.push(state);
  } catch (error) {
    violations.push(`${step}: what was written does not load: ${error.message}`);
  }
}
{
  const disk = new Disk();
  let [begun, isRunning, step, boot] = [0, false, '', boots[0]];
  for (const line of lines) {
    if (line.mark === 'begins') {
      [isRunning, step, begun] = [true, line.step, committed.length - 1];
      if (step === 'archive') boot = boots[1];
    } else if (line.mark === 'acknowledged') {
      isRunning = false;
    } else {
      disk.apply(line);
      if (mayCommit(line)) note(disk, step);
    }
    if (step === BULK) continue;
    const at = line.mark ?? `after ${line.op} ${line.path}`;
    const last = committed.length - 1;
    collect(disk, step, at, isRunning ? committed.slice(Math.max(begun, last - 1)) : [committed[last]], boot);
    if (violations.length >= MAX_SHOWN) break;
  }
}

// ---- the checks

function checkFile({ files, where, allowed }) {
  const bytes = files.get('state.json');
  if (!bytes) {
    if (!allowed.includes(undefined)) violations.push(`${where}: there is no state`);
    return undefined;
  }
  let state;
  try {
    state = describe(decodeState(bytes));
  } catch (error) {
    violations.push(`${where}: state.json does not load: ${error.message}`);
    return undefined;
  }
  if (!allowed.some((each) => each?.text === state.text)) {
    violations.push(
      `${where}: generation ${state.generation}, where ${allowed.map((each) => each?.generation ?? 'none')} may be`,
    );
  }
  // The last state of an earlier boot is never lost.
  const before = committed.findLast(
    (each) => each && each.bootId !== state.bootId && each.generation < state.generation,
  );
  if (before && state.bootId === boots[1].id) {
    const archived = [...files].filter(([path]) => path.startsWith('archive/') && path.endsWith('.json'));
    const isThere = archived.some(([, kept]) => {
      try {
        return describe(decodeState(kept)).pods.length === before.pods.length;
      } catch {
        return false;
      }
    });
    if (!isThere) violations.push(`${where}: the archive lacks generation ${before.generation}`);
  }
  return state;
}

function write(files, path) {
  for (const [name, bytes] of [...files].sort(([a], [b]) => a.length - b.length)) {
    if (bytes === 'folder') mkdirSync(join(path, name), { recursive: true, mode: 0o700 });
  }
  for (const [name, bytes] of files)
    if (bytes !== 'folder') writeFileSync(join(path, name), bytes, { mode: 0o600 });
}

// By default some of the images, different ones in each run, to save time.
function sample(list, most) {
  const every = isLong ? 1 : Math.max(1, Math.floor(list.length / most));
  const first = randomInt(every);
  return list.filter((_, i) => i % every === first);
}

// Opens images in a process that sees one boot id.
async function openAll(list, boot) {
  for (let i = 0; i < list.length && violations.length < MAX_SHOWN; i += OPENED_PER_PROCESS)
    await openSome(list.slice(i, i + OPENED_PER_PROCESS), boot);
}

async function openSome(list, boot) {
  const shim = shimEnvironment({ folder: '/nowhere', bootId: boot.file });
  const env = { ...process.env, ...shim, NUMALIGN_SHIM_NO_SYNC: '1' };
  const opener = spawn(process.execPath, [script('opener.mjs'), resolve(packages[0])], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const answers = createInterface({ input: opener.stdout })[Symbol.asyncIterator]();
  for (const image of list) {
    const isOfBoot = image.state?.bootId === boot.id;
    const path = join(isOfBoot ? memory : folder, `image-${opened++}`);
    write(image.files, path);
    opener.stdin.write(`${JSON.stringify({ stateDir: path })}\n`);
    const { grants, generation, error } = JSON.parse((await answers.next()).value);
    const where = `${image.where}, opened after ${boot.part}`;
    if (error) violations.push(`${where}: cannot be opened: ${error}`);
    else checkLeft(where, join(path, 'state.json'), generation);
    if (!error && image.state) checkGrants({ ...image, where }, grants, boot);
    if (!error && image.state && !isOfBoot) checkArchive(where, image.state, path);
    rmSync(path, { recursive: true });
    if (violations.length >= MAX_SHOWN) break;
  }
  opener.stdin.end();
}

// It has granted and given back: the next process reads that.
function checkLeft(where, path, generation) {
  try {
    const left = readState(path);
    if (left?.generation !== generation)
      violations.push(`${where}: the file then has generation ${left?.generation} instead of ${generation}`);
  } catch (error) {
    violations.push(`${where}: the file then does not load: ${error.message}`);
  }
}

function checkArchive(where, { bootId, pods }, path) {
  const names = existsSync(join(path, 'archive')) ? readdirSync(join(path, 'archive')) : [];
  const isThere = names
    .filter((name) => name.startsWith(bootId) && name.endsWith('.json'))
    .some((name) => {
      const kept = describe(readState(join(path, 'archive', name)));
      return kept.bootId === bootId && JSON.stringify(kept.pods) === JSON.stringify(pods);
    });
  if (!isThere) violations.push(`${where}: what was there is not in the archive`);
}

// Owners died with the power; persistent grants stay, unless the machine was restarted.
function checkGrants({ where, state }, grants, boot) {
  const persistent = state.bootId === boot.id ? state.pods.filter(({ kind }) => kind === 'persistent') : [];
  const text = (list) => JSON.stringify(list.map(({ uid, cpus }) => [uid, cpus.join(',')]).sort());
  const expected = text(persistent.map(({ uid, keys }) => ({ uid, cpus: cpusOf(keys) })));
  const found = text(grants.map(({ uid, cpus }) => ({ uid, cpus: parseList(cpus) })));
  if (expected !== found) violations.push(`${where}: has ${found} instead of ${expected}`);
}

const cpusOf = (keys) =>
  keys
    .filter((key) => key.startsWith('cpu '))
    .map((key) => Number(key.slice(4)))
    .sort((a, b) => a - b);

const list = [...images.values()];
if (violations.length === 0) {
  const rebooted = { part: 'another boot', file: join(folder, 'boot-id of another'), id: randomUUID() };
  writeFileSync(rebooted.file, `${rebooted.id}\n`);
  // Both as if the machine had run on, and as if it had been restarted: then nothing on record
  // counts, and the state is archived.
  const ofBoot = (boot) => list.filter((image) => image.boot === boot);
  await Promise.all([
    ...boots.map((boot) => openAll(sample(ofBoot(boot), 60), boot)),
    openAll(sample(list, 60), rebooted),
  ]);
}
for (const path of [folder, memory]) rmSync(path, { recursive: true });

console.log(
  `lost writes: ${lines.filter(({ mark }) => !mark).length} steps of ${steps.size - (steps.has('') ? 1 : 0)} transactions, ${list.length} images, opened ${opened} times`,
);
console.log(`${violations.length} violations`);
for (const violation of violations.slice(0, MAX_SHOWN)) console.log(`VIOLATION ${violation}`);
process.exit(violations.length > 0 ? 1 : 0);
