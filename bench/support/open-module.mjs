// What a module costs that opens this machine, in the state folder that it is given.
import './cpu-time.mjs';
import { openManager } from '../../dist/index.js';

await openManager({ stateDir: process.argv[2] });
process.exit();
