// Opens a folder and prints how long that took, in nanoseconds. The machine is known before.
import { discover } from '../../dist/entries/topology.js';
import { openManager } from '../../dist/index.js';

const { stateDir, machine } = JSON.parse(process.argv[2]);
const topology = await discover({ synthetic: machine });
const begin = performance.now();
const manager = await openManager({ stateDir, topology });
console.log((performance.now() - begin) * 1e6);
manager.close();
