// A process that runs functions sent to it: (numalign, mine, ...arguments). `numalign` has all
// entries of the package, `mine` is what the process keeps between calls.
import { runInThisContext } from 'node:vm';
import * as diagnostics from '../../../dist/entries/diagnostics.js';
import * as topology from '../../../dist/entries/topology.js';
import * as main from '../../../dist/index.js';

// Further modules that tests need, by their addresses.
const importModule = (url) => import(url);
const numalign = { ...main, ...topology, ...diagnostics, importModule };
const mine = { grants: {} };
process.on('message', async ({ code, args }) => {
  try {
    const value = await runInThisContext(`(${code})`)(numalign, mine, ...args);
    process.send({ value: JSON.parse(JSON.stringify(value ?? null)) });
  } catch (error) {
    const { code: errorCode, message, details } = error;
    process.send({
      error: { code: errorCode, message, details: JSON.parse(JSON.stringify(details ?? null)) },
    });
  }
});
process.on('disconnect', () => process.exit());
