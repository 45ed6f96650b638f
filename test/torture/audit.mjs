// Opens a state folder whose owners are all dead and prints what is left. Then it releases the
// persistent grants and the kubelet's records, and prints again. One JSON object a line.
//
//   node audit.mjs '{ "package", "machine", "stateDir" }'
import { modulesOf } from './package-modules.mjs';
import { openQuietManager } from './quiet-manager.mjs';

const { package: folder, machine, stateDir } = JSON.parse(process.argv[2]);
const load = modulesOf(folder);
const { discover } = await load('entries/topology');
const { openManager } = await load('index');

const topology = machine.isReal ? {} : { topology: await discover({ synthetic: machine.synthetic }) };
const options = { ...machine.options, ...topology, stateDir, lockTimeoutMs: 10_000 };
const manager = machine.isQuiet ? await openQuietManager(folder, options) : await openManager(options);

function tell() {
  const grants = manager.grants().map(({ uid, cpus, upcoming, owner }) => ({
    ...{ uid, cpus: String(cpus), kind: owner.kind },
    upcoming: String(upcoming ?? ''),
  }));
  const [generation, memory] = [manager.generation(), manager.memory()];
  const [free, pool] = [manager.freeCpus(), manager.sharedPool()].map(String);
  const kubelet = String(manager.kubelet?.()?.cpus ?? '');
  console.log(JSON.stringify({ generation, free, pool, grants, memory, kubelet }));
}

tell();
for (const { uid } of manager.grants()) await manager.release(uid);
await manager.recordKubelet?.(null);
// The account on disk holds all devices and memory.
tell();
