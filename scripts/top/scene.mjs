// What happens while `numalign top` is recorded, in a virtual machine: two programs come, a compiler
// is put onto a CPU of one of them, and that program ends. Prints what top prints.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { root } from '../steps.mjs';

/** Of the page, in characters. */
export const WIDTH = 96;
const SECONDS = 2;
const NUMALIGN = [process.execPath, join(root, 'packages/cli/dist/main.cjs')];
// A server of two threads, each busy a third of its time, and a trainer of four, each half of it.
const LOAD = (threads, busyMs, idleMs) => `const { Worker, isMainThread } = require('node:worker_threads');
if (isMainThread) for (let i = 0; i < ${threads - 1}; i++) new Worker(__filename);
const rest = new Int32Array(new SharedArrayBuffer(4));
for (;;) {
  for (const end = performance.now() + ${busyMs}; performance.now() < end; );
  if (${idleMs}) Atomics.wait(rest, 0, 0, ${idleMs});
}`;

function start(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], cwd: root, ...options });
  child.stderr.pipe(process.stderr);
  return child;
}

/** A program with a grant, once it has that. */
async function granted(name, cpus, load) {
  const file = `/tmp/${name}.cjs`;
  writeFileSync(file, load);
  // Members only: then another program can get onto these CPUs.
  const run = ['run', '--cpus', String(cpus), '--name', name, '--enforcement', 'members', '--'];
  const child = start(NUMALIGN[0], [NUMALIGN[1], ...run, process.execPath, file]);
  await once(child.stderr, 'data');
  return child;
}

function cpusOf(name) {
  const { stdout } = spawnSync(NUMALIGN[0], [NUMALIGN[1], 'status', '--output', 'json'], {
    encoding: 'utf8',
  });
  return JSON.parse(stdout).grants.find((grant) => grant.name === name).cpus;
}

export async function playScene() {
  spawnSync(NUMALIGN[0], [NUMALIGN[1], 'configure', '--reserved', '0']);
  const env = { ...process.env, COLUMNS: String(WIDTH), NO_COLOR: '1' };
  const top = start(NUMALIGN[0], [NUMALIGN[1], 'top', '--interval', String(SECONDS)], { env });
  let text = '';
  top.stdout.setEncoding('utf8').on('data', (more) => {
    text += more;
  });
  const pages = () => text.split(/^(?=\/run\/numalign, )/m);
  // Waits for `count` pages more, and for such a page. Emulated, a program takes seconds to start.
  const pageAfter = async (count, is = () => true) => {
    for (const goal = pages().length + count; pages().length < goal || !is(pages().at(-2)); ) await pause(20);
  };
  await pageAfter(1);
  await granted('gateway', 2, LOAD(2, 3, 7));
  await pageAfter(2);
  const trainer = await granted('trainer', 4, LOAD(4, 5, 5));
  await pageAfter(2);
  const onto = cpusOf('trainer').split(/[-,]/)[0];
  const compiler = [
    '-c',
    onto,
    'g++',
    '-std=c++20',
    '-O2',
    '-Inative',
    '-c',
    'native/core/best_fit.cc',
    '-o',
  ];
  const compile = start('taskset', [...compiler, '/dev/null'], { detached: true });
  await pageAfter(1, (page) => page.includes('cc1plus'));
  await pageAfter(2);
  process.kill(-compile.pid, 'SIGKILL');
  trainer.kill('SIGKILL');
  // Its CPUs are shared again.
  await pageAfter(1, (page) => !page.includes('trainer') && !page.includes('free: CPUs 1,8-15'));
  await pageAfter(1);
  process.stdout.write(pages().slice(0, -1).join(''));
  process.exit();
}

if (process.argv[2] === 'play') await playScene();
