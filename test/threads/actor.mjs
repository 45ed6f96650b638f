// A process with numalign that does what each line of its input says, and answers in a line.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const [, , library, diagnostics, stateDir] = process.argv;
const { openManager } = await import(library);
const { affinity } = await import(diagnostics);

let manager;
let grant;

const ACTIONS = {
  open: async (sharedMember) => {
    manager = await openManager({ stateDir, cgroupRoot: null, sharedMember: sharedMember !== 'alone' });
  },
  acquire: async () => {
    grant = await manager.acquire({ cpu: 1 });
    return String(grant.cpus);
  },
  pin: () => void grant.pin(),
  release: () => grant.release(),
  close: () => manager.close(),
  end: () => process.kill(process.pid, 'SIGKILL'),
  until: async (mask) => {
    while (String(affinity()) !== mask) await new Promise((resolve) => setTimeout(resolve, 10));
  },
  start: async (...command) => {
    const child = spawn(command[0], command.slice(1), { stdio: 'ignore' });
    await new Promise((resolve) => child.once('spawn', resolve));
    return String(child.pid);
  },
};

for await (const line of createInterface(process.stdin)) {
  const [name, ...args] = JSON.parse(line);
  console.log((await ACTIONS[name](...args)) ?? 'done');
}
