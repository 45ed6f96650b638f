// Works on a state folder step by step, one transaction at a time, and marks in the shim's trace
// where each begins and where it is acknowledged.
//
//   node writer.mjs '{ "package", "stateDir", "trace", "part": "first" | "after reboot" }'
import { appendFileSync, closeSync, fstatSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const { package: folder, stateDir, trace, part } = JSON.parse(process.argv[2]);
const { discover } = await import(pathToFileURL(`${folder}/dist/entries/topology.js`));
const { openManager } = await import(pathToFileURL(`${folder}/dist/index.js`));
const topology = await discover({ synthetic: 'package:2 [numa(memory=8GB)] core:8 pu:1' });

// With more bytes of lines than this (and than the state has), the file is rewritten.
const MOST_LINES = 64 * 1024;

const mark = (facts) => appendFileSync(trace, `${JSON.stringify(facts)}\n`);
async function step(name, action) {
  mark({ mark: 'begins', step: name });
  const result = await action();
  mark({ mark: 'acknowledged', step: name });
  return result;
}

const stateFile = join(stateDir, 'state.json');

function leaveTail(generation, length) {
  const tail = `{"line":"change","generation":${generation},"bootId":"${'x'.repeat(length)}`;
  const fd = openSync(stateFile, 'r+');
  writeSync(fd, tail, fstatSync(fd).size);
  fsyncSync(fd);
  closeSync(fd);
}

// True if the next commit writes the whole file.
function isFull() {
  const bytes = readFileSync(stateFile);
  const head = bytes.indexOf('\n') + 1;
  return bytes.length - head - JSON.parse(bytes.subarray(0, head)).bytes > MOST_LINES;
}

async function fill(grant) {
  for (let cpus = 2; !isFull(); cpus = 5 - cpus) await grant.resize({ cpu: cpus });
}

const open = () => openManager({ topology, stateDir, reservedSystemCPUs: '0' });

if (part === 'first') {
  const manager = await step('the first commit', open);
  const kept = await step('acquire, persistent', () =>
    manager.acquire({ cpu: 3, memory: '1Gi', name: 'kept', owner: 'persistent' }),
  );
  const own = await step('acquire', () => manager.acquire({ cpu: 2, name: 'own' }));
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { uid: 'pod-1', name: 'pod' },
    spec: {
      containers: [
        { name: 'a', resources: { requests: { cpu: 2, memory: '1Gi' }, limits: { cpu: 2, memory: '1Gi' } } },
      ],
    },
  };
  await step('admit, persistent', () => manager.admit(pod, { owner: 'persistent' }));
  if (typeof own.resize === 'function') {
    await step('resize, larger', () => own.resize({ cpu: 4 }));
    await step('resize, smaller', () => own.resize({ cpu: 1 }));
  }
  await step('release', () => own.release());
  await step('release, persistent', () => kept.release());
  // The state that a kill in the middle of an append leaves.
  await step('acquire behind a line that was not finished', async () => {
    leaveTail(manager.generation() + 1, 100);
    await manager.acquire({ cpu: 1, name: 'behind', owner: 'persistent' });
  });
  await step('acquire behind a longer one', async () => {
    leaveTail(manager.generation() + 1, 1500);
    await manager.acquire({ cpu: 1, name: 'behind that', owner: 'persistent' });
  });
  const again = await step('acquire again', () => manager.acquire({ cpu: 1, name: 'again' }));
  await step('bulk', () => fill(again));
  await step('compaction', () => again.resize({ cpu: 4 }));
  await step('acquire after the compaction', () =>
    manager.acquire({ cpu: 1, name: 'last', owner: 'persistent' }),
  );
} else {
  const manager = await step('archive', open);
  await step('acquire after the reboot', () => manager.acquire({ cpu: 4, owner: 'persistent' }));
}
