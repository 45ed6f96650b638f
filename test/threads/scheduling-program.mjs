// Tries scheduling classes on its main thread, and prints the result of each: JSON on the command
// line: { stateDir, attempts }.

import { scheduling } from '../../dist/entries/diagnostics.js';
import { openManager } from '../../dist/index.js';

const { stateDir, attempts } = JSON.parse(process.argv[2]);
const manager = await openManager({ stateDir });
const grant = await manager.acquire({ cpu: 1 });
grant.pin({ threads: 'current' });
const answers = attempts.map((options) => {
  try {
    return grant.schedule(options);
  } catch ({ code, details, message }) {
    return { code, ...details, message };
  }
});
await grant.release();
process.stdout.write(JSON.stringify({ answers, after: scheduling() }));
manager.close();
