// The cost of a module that opens a machine in the given state folder: this machine, or one that a
// text describes.
import './cpu-time.mjs';
import { openManager } from '../../dist/index.js';

const [stateDir, synthetic] = process.argv.slice(2);
if (synthetic) {
  const { discover } = await import('../../dist/entries/topology.js');
  await openManager({ stateDir, topology: await discover({ synthetic }) });
} else {
  await openManager({ stateDir });
}
process.exit();
