// Opens a folder and prints the CPU time of all threads that this took, in nanoseconds. The machine
// is known before.
import { discover } from '../../dist/entries/topology.js';
import { openManager } from '../../dist/index.js';
import { cpuOf } from './cpu-time.mjs';

const { stateDir, machine } = JSON.parse(process.argv[2]);
const topology = await discover({ synthetic: machine });
let manager;
const cpuNs = await cpuOf(async () => {
  manager = await openManager({ stateDir, topology });
});
console.log(JSON.stringify({ cpuNs }));
manager.close();
