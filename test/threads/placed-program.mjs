// Starts test/threads/program.mjs, and observes from outside where its threads run. Plain
// JavaScript: vitest and, in a virtual machine, node:test use it.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('program.mjs', import.meta.url));
// Of /proc/<pid>/task/<tid>/stat, counted behind the name, which may contain anything: `processor`
// is field 39.
const PROCESSOR = 39 - 3;
// The most, as a multiple of the usual time.
const LONGER = 15;

function readThread(pid, tid) {
  const folder = `/proc/${pid}/task/${tid}`;
  try {
    // How often it has been put on a CPU comes first: if that has grown, it is on `processor`
    // because it runs there, not from before.
    const turns = Number(readFileSync(`${folder}/schedstat`, 'utf8').split(' ')[2]);
    const stat = readFileSync(`${folder}/stat`, 'utf8');
    return { turns, cpu: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[PROCESSOR]) };
  } catch {
    return undefined; // it has ended
  }
}

const threadsOf = (pid) => readdirSync(`/proc/${pid}/task`).map(Number);

/**
 * By thread: the CPUs on which it was seen after it had run again; on a busy machine looked at for
 * longer, until all of these have, and one of those that help them.
 */
async function sample(pid, milliseconds, busy, helpers) {
  const begin = Date.now();
  const hasAll = () => busy.every((tid) => seen.has(tid)) && helpers.some((tid) => seen.has(tid));
  const isOver = () => Date.now() > begin + milliseconds * (hasAll() ? 1 : LONGER);
  const first = new Map(threadsOf(pid).map((tid) => [tid, readThread(pid, tid)?.turns ?? 0]));
  const seen = new Map();
  while (!isOver()) {
    for (const tid of threadsOf(pid)) {
      const thread = readThread(pid, tid);
      if (!thread || thread.turns === first.get(tid)) continue;
      seen.set(tid, (seen.get(tid) ?? new Set()).add(thread.cpu));
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return seen;
}

/**
 * What the program says once its threads are placed, where they were seen since, and what it says
 * at its end.
 */
export async function runProgram(options, milliseconds = 2_000) {
  const child = spawn(process.execPath, ['--expose-gc', PROGRAM, JSON.stringify(options)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error('the program has ended');
      return JSON.parse(value);
    };
    const placed = await next();
    const { main, workers, pool, v8, others } = placed.kinds;
    const seen = await sample(child.pid, milliseconds, [...main, ...workers, ...pool], [...v8, ...others]);
    child.stdin.end();
    return { pid: child.pid, placed, seen, ended: await next() };
  } finally {
    child.kill('SIGKILL');
  }
}
