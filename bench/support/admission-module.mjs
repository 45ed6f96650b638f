// What it takes a process that has the package to open this machine in the given state folder, and
// to acquire a CPU. Reports CPU time and time, in microseconds. The CPU is free when the process
// has ended, as after `numalign run`.
import { openManager } from '../../dist/index.js';

const begin = performance.now();
const cpu = process.cpuUsage();
const manager = await openManager({ stateDir: process.argv[2] });
await manager.acquire({ cpu: 1 });
const { user, system } = process.cpuUsage(cpu);
process.stdout.write(JSON.stringify({ cpuUs: user + system, us: (performance.now() - begin) * 1000 }), () =>
  process.exit(),
);
