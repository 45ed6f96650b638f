// Opens a folder and prints how long that took, and the CPU time of all threads, in nanoseconds.
// The machine is known before.
import { discover } from '../../dist/entries/topology.js';
import { openManager } from '../../dist/index.js';

const { stateDir, machine } = JSON.parse(process.argv[2]);
const topology = await discover({ synthetic: machine });
const cpu = process.cpuUsage();
const begin = performance.now();
const manager = await openManager({ stateDir, topology });
const ns = (performance.now() - begin) * 1e6;
const { user, system } = process.cpuUsage(cpu);
console.log(JSON.stringify({ ns, cpuNs: (user + system) * 1000 }));
manager.close();
