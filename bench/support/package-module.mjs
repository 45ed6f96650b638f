// What a module costs that imports the package, and that makes the machine which a text describes,
// where it is given one.
import './cpu-time.mjs';
import '../../dist/index.js';

const [synthetic] = process.argv.slice(2);
if (synthetic) {
  const { discover } = await import('../../dist/entries/topology.js');
  await discover({ synthetic });
}
