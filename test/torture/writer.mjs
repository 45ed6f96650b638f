// Works on a state folder step by step, one transaction at a time, and marks in the shim's trace
// where each begins and where it was acknowledged.
//
//   node writer.mjs '{ "package", "stateDir", "trace", "part": "first" | "after reboot" }'
import { appendFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const { package: folder, stateDir, trace, part } = JSON.parse(process.argv[2]);
const { discover } = await import(pathToFileURL(`${folder}/dist/entries/topology.js`));
const { openManager } = await import(pathToFileURL(`${folder}/dist/index.js`));
const topology = await discover({ synthetic: 'package:2 [numa(memory=8GB)] core:8 pu:1' });

const mark = (facts) => appendFileSync(trace, `${JSON.stringify(facts)}\n`);
async function step(name, action) {
  mark({ mark: 'begins', step: name });
  const result = await action();
  mark({ mark: 'acknowledged', step: name });
  return result;
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
} else {
  const manager = await step('archive', open);
  await step('acquire after the reboot', () => manager.acquire({ cpu: 4, owner: 'persistent' }));
}
