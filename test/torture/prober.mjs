// Opens a state folder that may be damaged, takes all that it can get, reports what it got, and
// gives it back. Reads { stateDir } a line, answers { given, pool } (lists of CPUs) or { error } a
// line. Errors of a transaction after the opening are answered as `refused`.
//
//   node prober.mjs PACKAGE
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { simulatedMachine } from './machines.mjs';

const folder = process.argv[2];
const { discover } = await import(pathToFileURL(`${folder}/dist/entries/topology.js`));
const { openManager, NumalignError } = await import(pathToFileURL(`${folder}/dist/index.js`));
const { synthetic } = simulatedMachine();
const topology = await discover({ synthetic });

function refusalOf(error) {
  if (error instanceof NumalignError) return error.code;
  throw error;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { stateDir } = JSON.parse(line);
  const answer = { given: [], pool: '' };
  try {
    const manager = await openManager({ topology, stateDir, lockTimeoutMs: 20_000 });
    answer.pool = String(manager.sharedPool());
    try {
      // Everything that is free, by best fit: a CPU that only looks free is among it.
      const grant = await manager.acquire({ cpu: Math.max(1, manager.freeCpus().size) });
      answer.given.push(String(grant.cpus), String(grant.held));
      await grant.release();
    } catch (error) {
      answer.refused = refusalOf(error);
    }
    // Else this process knows of a later state of the folder, and says so to the next probe.
    manager.close();
  } catch (error) {
    answer.error = refusalOf(error);
  }
  console.log(JSON.stringify(answer));
}
