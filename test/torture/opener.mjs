// Opens state folders one after the other, like a process that starts after a power cut, and
// reports what it finds. Reads { stateDir } a line, answers { grants } or { error } a line.
//
//   node opener.mjs PACKAGE
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const { discover } = await import(pathToFileURL(`${process.argv[2]}/dist/entries/topology.js`));
const { openManager } = await import(pathToFileURL(`${process.argv[2]}/dist/index.js`));
const topology = await discover({ synthetic: 'package:2 [numa(memory=8GB)] core:8 pu:1' });

for await (const line of createInterface({ input: process.stdin })) {
  const { stateDir } = JSON.parse(line);
  let answer;
  try {
    const manager = await openManager({ topology, stateDir });
    const grants = manager.grants().map(({ uid, cpus }) => ({ uid, cpus: String(cpus) }));
    // Free CPUs can be acquired.
    const free = manager.freeCpus().size;
    const grant = await manager.acquire({ cpu: 1 });
    await grant.release();
    answer = { grants, free, generation: manager.generation() };
    manager.close();
  } catch (error) {
    answer = { error: `${error.code ?? error.name}: ${error.message}` };
  }
  console.log(JSON.stringify(answer));
}
