// The cost of a module that imports the package, and that makes the machine that a text describes,
// if there is one.
import './cpu-time.mjs';
import '../../dist/index.js';

const [synthetic] = process.argv.slice(2);
if (synthetic) {
  const { discover } = await import('../../dist/entries/topology.js');
  await discover({ synthetic });
}
