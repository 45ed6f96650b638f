// A process that uses numalign on command. Each line of its input is JSON [verb, argument]; each line of its output is the JSON answer:
// { value } or { error: { code, message } }.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { openManager, pin, threads } from '../../dist/index.js';

let manager;
const grants = new Map();
const maskOf = () => /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1];

const verbs = {
  async open(options) {
    manager = await openManager(options);
    return process.pid;
  },
  async acquire(options) {
    const grant = await manager.acquire(options);
    grants.set(grant.id, grant);
    return grant;
  },
  pin: ({ id, ...options }) => grants.get(id).pin(options).moved.length,
  release: ({ id }) => grants.get(id).release(),
  close: () => manager.close(),
  sharedPool: () => String(manager.sharedPool),
  grants: () => manager.grants(),
  mask: maskOf,
  pinTo: (cpus) => pin(cpus).moved.length,
  threads: () => threads().map(({ tid, role, cpus }) => ({ tid, role, cpus: String(cpus) })),
};

const lines = createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const [verb, argument] = JSON.parse(line);
  let answer;
  try {
    answer = { value: await verbs[verb](argument) };
  } catch (error) {
    answer = { error: { code: error.code, message: error.message } };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
await once(lines, 'close');
