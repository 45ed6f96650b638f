// Opens a folder and prints how long that blocks the event loop at most, and how long it is blocked
// in as much time with nothing to do. The machine is known before.
import { discover } from '../../dist/entries/topology.js';
import { openManager } from '../../dist/index.js';
import { longestIdleTurn, longestTurn } from './loop-delay.mjs';

const { stateDir, machine } = JSON.parse(process.argv[2]);
const topology = await discover({ synthetic: machine });
const controlNs = await longestIdleTurn(60);
let manager;
const maxNs = await longestTurn(async () => {
  manager = await openManager({ stateDir, topology });
});
console.log(JSON.stringify({ maxNs, controlNs }));
manager.close();
