// The main job from end to end: get exclusive CPUs, run on them, find them on record, release them.
import { existsSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MACHINE_STATE_DIR, NumalignError, openManager } from 'numalign';

const privateParent = () =>
  existsSync(process.env.XDG_RUNTIME_DIR ?? '') ? process.env.XDG_RUNTIME_DIR : tmpdir();

// /run/numalign belongs to root and the group numalign, and is not for machines that a kubelet
// manages. Otherwise use a folder for this user only.
async function open() {
  try {
    return await openManager();
  } catch (error) {
    const isUnavailable =
      error instanceof NumalignError && ['ERR_STATE_FOLDER', 'ERR_KUBELET_CONFLICT'].includes(error.code);
    if (!isUnavailable) throw error;
    const stateDir = join(privateParent(), `numalign-${process.getuid()}`);
    console.log(
      `${MACHINE_STATE_DIR} cannot be used [${error.code}]: using the private folder ${stateDir}. It does not show other users' grants.\n`,
    );
    return await openManager({ stateDir });
  }
}

const allowedByKernel = () =>
  /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1];

const manager = await open();

console.log(`Shared pool:          ${manager.sharedPool()}`);
console.log(`The kernel says:      ${allowedByKernel()}\n`);

await manager.use({ cpu: 1, name: 'main-job' }, (grant) => {
  const { moved, unmovable } = grant.pin();
  console.log(
    `Granted:              CPU ${grant.cpus} on NUMA node ${grant.numaNodes}, enforcement "${grant.enforcement}"`,
  );
  console.log(`Pinned:               ${moved.length} threads, ${unmovable.length} could not be moved`);
  console.log(`The kernel says:      ${allowedByKernel()}`);
  console.log(`Shared pool:          ${manager.sharedPool()}`);
  // Each commit is a line of the file.
  const lines = readFileSync(join(manager.stateDir, 'state.json'), 'utf8').trimEnd().split('\n');
  const { generation, pods } = JSON.parse(lines.at(-1));
  const [{ cpus }] = pods.find((pod) => pod.uid === grant.uid).containers;
  console.log(
    `On disk:              ${manager.stateDir}/state.json, generation ${generation}: CPU ${cpus} for "${grant.name}"\n`,
  );
});

console.log('Released.');
console.log(`Shared pool:          ${manager.sharedPool()}`);
console.log(`The kernel says:      ${allowedByKernel()}`);
