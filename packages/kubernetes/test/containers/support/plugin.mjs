// plugin.mjs OPTIONS: a numalign-node that can be killed in the middle of a call. OPTIONS, as JSON:
// `nriSocket`, `runtimeSocket`, `name`, `manager` (of openManager), and `death`: { call, when: 'before' or 'after' },
// the handler of the runtime's call before which, or after which and before its answer, the process
// kills itself. A line of its input is another `death`. A line of its output is `armed`, the name of
// a call that it has handled, or `log …`.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { NumalignNode } from '@numalign/kubernetes';
import { openManager } from 'numalign';
import { ContainerHandlers } from '../../../dist/containers/container-handlers.js';

const { nriSocket, runtimeSocket, name, manager: options, ...rest } = JSON.parse(process.argv[2]);
let { death } = rest;
const CALLS = [
  'synchronize',
  'runPodSandbox',
  'createContainer',
  'postCreateContainer',
  'startContainer',
  'updateContainer',
  'stopContainer',
  'removeContainer',
  'removePodSandbox',
];

const say = (line) => writeSync(1, `${line}\n`);
const dieAt = (call, when) => {
  if (death?.call === call && death.when === when) process.kill(process.pid, 'SIGKILL');
};

for (const call of CALLS) {
  const handle = ContainerHandlers.prototype[call];
  ContainerHandlers.prototype[call] = function (...args) {
    dieAt(call, 'before');
    const over = (answer) => {
      dieAt(call, 'after');
      say(call);
      return answer;
    };
    const answer = handle.apply(this, args);
    return answer instanceof Promise ? answer.then(over) : over(answer);
  };
}

createInterface({ input: process.stdin }).on('line', (line) => {
  death = JSON.parse(line);
  say('armed');
});
const manager = await openManager(options);
const log = (level, message) => say(`log ${level}: ${message}`);
const node = new NumalignNode({ manager, nriSocket, runtimeSocket, ...(name && { name }), log });
await node.start();
