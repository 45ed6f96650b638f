// Fuzzes the side of NRI that a runtime reaches: sessions with a hostile runtime, and a plugin that
// meets one hostile runtime after another and must find the good one at the end. Every session ends
// with an error that has a code, or goes on answering; nothing hangs, nothing leaks, no promise is
// left to reject.
//
//   npm run fuzz:nri -- --seconds N --seed S
import { mkdtempSync, readdirSync, rmSync, watch } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { freshSeed, parseOptions } from '../../../../test/torture/options.mjs';
import { Random } from '../../../../test/torture/random.mjs';
import { NriSession } from '../../dist/nri/session.js';
import { HostileRuntime, WAYS } from './hostile-runtime.mjs';
import { fuzzPlugin } from './plugin.mjs';
import { startWatchdog } from './watchdog.mjs';

const options = parseOptions('packages/kubernetes/test/fuzz/nri.mjs', { seconds: 20, seed: freshSeed() });
const LIMITS = { queue: 1 << 20, stall: 300 };
// Milliseconds: of a session as a whole, and of the event loop at a stretch.
const SESSION_LIMIT = 60_000;
const LOOP_LIMIT = 30_000;
const HEAP_GROWTH = 24 << 20;
const MEMORY_LIMIT = 1 << 30;
const WARM_UP = 100;
const PARALLEL = 8;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');

const folder = mkdtempSync(join(tmpdir(), 'fuzz-nri-'));
const counts = {};
const flaws = [];
const fail = (text) => flaws.push(text);
process.on('unhandledRejection', (error) => fail(`an unhandled rejection: ${error?.stack ?? error}`));
process.on('uncaughtException', (error) => fail(`an uncaught exception: ${error?.stack ?? error}`));

/** Handlers that are as slow, wrong and talkative as the seed decides. */
function handlersOf(random, session) {
  const update = () => ({
    container_id: 'x'.repeat(random.below(100)),
    linux: { resources: { cpu: { cpus: '0' } } },
  });
  const updates = () => Array.from({ length: random.below(50) }, update);
  const act = async (result) => {
    if (random.chance(4)) await sleep(random.below(10));
    if (random.chance(6)) throw new Error('refused');
    if (random.chance(20)) return [{ container_id: 1 }];
    if (random.chance(8)) await session().updateContainers(updates());
    return result;
  };
  return {
    synchronize: () => Promise.resolve(updates()),
    createContainer: () => act({ adjust: { env: [{ key: 'A', value: 'b' }] }, updates: updates() }),
    updateContainer: (_pod, _container, resources) => act([{ container_id: 'x', linux: { resources } }]),
    stopContainer: () => act(updates()),
    runPodSandbox: () => act(),
    removeContainer: () => act(),
  };
}

async function pair(path) {
  const server = createServer();
  await new Promise((resolve) => server.listen(path, resolve));
  const near = connect(path);
  const far = await new Promise((resolve) => server.once('connection', resolve));
  server.close();
  return [near, far];
}

const isCoded = (error) => error?.name === 'NodeError' && /^ERR_(TTRPC|NRI)_[A-Z_]+$/.test(error.code);

/** The problem with the end of a session. */
function flawOf(runtime, answer, reason) {
  if (!isCoded(reason)) return 'ended without a code';
  // A Configure or Synchronize that fails ends a session.
  if (answer || reason.code === 'ERR_NRI_HANDLER') return undefined;
  if (runtime.illegal)
    return reason.code === runtime.illegal ? undefined : `did not end by ${runtime.illegal}`;
  // So does a registration without an answer, and nothing else that is framed well.
  if (runtime.isFramed && reason.code !== 'ERR_NRI_REGISTER') return 'ended for no reason';
  return undefined;
}

async function fuzzSession(number) {
  const random = new Random(options.seed, number);
  const way = random.weighted(WAYS);
  const [near, far] = await pair(join(folder, `${number}.sock`));
  const session = new NriSession({
    socket: near,
    name: 'fuzz',
    index: '10',
    limits: LIMITS,
    handlers: handlersOf(random, () => session),
  });
  const started = session.start().then(
    () => 'started',
    (error) =>
      isCoded(error) ? error.code : fail(`session ${number} (${way}): start threw ${error?.stack}`),
  );
  const runtime = new HostileRuntime(random, far);
  await runtime.run(way);
  if (runtime.illegal) await runtime.closed;
  const answer = runtime.isFramed && !runtime.illegal && !far.destroyed ? await runtime.probe() : undefined;
  const pending = session.updateContainers([]).catch((error) => {
    if (!isCoded(error) && error?.code !== 'ERR_TTRPC_STATUS')
      fail(`session ${number}: an update threw ${error?.stack}`);
  });
  if (random.chance(2)) far.end();
  else far.destroy();
  const reason = await session.closed;
  const flaw = flawOf(runtime, answer, reason);
  if (flaw) fail(`session ${number} (${way}) ${flaw}: ${reason?.stack ?? reason}`);
  await started;
  await pending;
  far.destroy();
  // Pending messages of handlers are dropped.
  await sleep(15);
  const key = `${way}: ${answer ? 'works' : reason?.code}`;
  counts[key] = (counts[key] ?? 0) + 1;
}

/** With a limit of time, the seed and the number named where it is exceeded. */
async function bounded(number) {
  const over = new AbortController();
  const late = sleep(SESSION_LIMIT, 'late', { signal: over.signal }).catch(() => {});
  const result = await Promise.race([fuzzSession(number), late]);
  over.abort();
  if (result === 'late') throw new Error(`session ${number} hangs: --seed ${options.seed}`);
  const { rss } = process.memoryUsage();
  if (rss > MEMORY_LIMIT) throw new Error(`session ${number}: ${rss >> 20} MiB of memory`);
}

function heap() {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}
const handles = () =>
  `${readdirSync('/proc/self/fd').length} files, ${process.getActiveResourcesInfo().sort()}`;

const watchdog = startWatchdog(LOOP_LIMIT, `--seed ${options.seed}`);
let number = 0;

/** Parallel sessions, as long as there is time. */
async function inParallel(more) {
  const workers = Array.from({ length: PARALLEL }, async () => {
    while (more()) await bounded(number++);
  });
  await Promise.all(workers);
}

// libuv keeps its file of inotify once there was a watch.
watch(folder).close();
try {
  await inParallel(() => number < WARM_UP);
  const before = { heap: heap(), handles: handles() };
  const plugin = fuzzPlugin(new Random(options.seed, 1, 1), folder, options.seconds * 1000);
  const end = performance.now() + options.seconds * 1000;
  await inParallel(() => performance.now() < end && flaws.length === 0);
  Object.assign(counts, await plugin);
  await sleep(500);
  const after = { heap: heap(), handles: handles() };
  if (after.heap - before.heap > HEAP_GROWTH)
    fail(`the heap grew by ${(after.heap - before.heap) >> 10} KiB`);
  if (after.handles !== before.handles) fail(`handles: ${before.handles} before, ${after.handles} after`);
  console.log(
    `heap: ${before.heap >> 10} KiB after ${WARM_UP} sessions, ${after.heap >> 10} KiB after ${number}`,
  );
} catch (error) {
  fail(error.stack);
}
await watchdog.stop();
rmSync(folder, { recursive: true, force: true });
for (const key of Object.keys(counts).sort()) console.log(`${String(counts[key]).padStart(6)}  ${key}`);
for (const flaw of flaws.slice(0, 5)) console.error(flaw);
console.log(
  `fuzz:nri ${number} sessions, --seed ${options.seed}: ${flaws.length === 0 ? 'nothing found' : `${flaws.length} flaws`}`,
);
process.exit(flaws.length === 0 ? 0 : 1);
