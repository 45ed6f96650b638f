// numalign/preload: `node --import numalign/preload app.mjs` runs a program on CPUs of its own from
// its first line.
import { isMainThread } from 'node:worker_threads';
import type { Grant } from './grant.js';
import type { AcquireOptions } from './input/request.js';
import type { Manager } from './manager.js';

/**
 * The manager, and the grant that this process runs on; undefined in Workers and in processes that
 * run on their parent's grant.
 */
export let manager: Manager | undefined;
export let grant: Grant | undefined;

function fromVariable(name: string, text: string | undefined): object | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value;
  } catch {
    // Told below.
  }
  throw new Error(`${name} must be a JSON object, such as '{"cpu": 1}', not '${text}'`);
}

async function acquire(): Promise<void> {
  const { variable, withName } = await import('./input/program-variables.js');
  const options = (name: string) => fromVariable(name, variable(name));
  const asked = options('NUMALIGN_ACQUIRE');
  if (asked === undefined)
    throw new Error(`NUMALIGN_ACQUIRE is not set: what to acquire, such as '{"cpu": 1}'`);
  const request = withName(asked);
  const managerOptions = options('NUMALIGN_MANAGER') ?? {};
  const placement = options('NUMALIGN_THREADS') ?? {};
  const { openManager } = await import('./open-manager.js');
  manager = await openManager(managerOptions);
  grant = await manager.acquire(request as AcquireOptions);
  // Before libuv's pool is started, which inherits it. Not by pin() of this thread: a cgroup of v2
  // takes the whole process only, which placeThreads() moves.
  const { pinMemory } = await import('./threads/memory.js');
  pinMemory({ grant: grant.uid, mode: 'preferred', nodes: grant.memoryNodes, from: undefined });
  await grant.placeThreads(placement);
  // As `numalign run` does.
  process.env.NUMALIGN_GRANT = grant.uid;
  process.env.NUMALIGN_CPUS = grant.cpus.toString();
  process.env[ACQUIRED_BY] = String(process.pid);
}

/** The process whose preload has acquired NUMALIGN_GRANT. */
const ACQUIRED_BY = 'NUMALIGN_PRELOAD_PID';

// A cluster worker does the work of its primary in parallel: on the primary's own CPUs it would
// not.
async function isOnGrant(): Promise<boolean> {
  if (process.env.NUMALIGN_GRANT === undefined) return false;
  if (process.env[ACQUIRED_BY] !== String(process.ppid)) return true;
  const { default: cluster } = await import('node:cluster');
  return !cluster.isWorker;
}

// Workers inherit --import, and their parent has seen to their CPUs: the addon gets to know them.
// Processes inherit it by fork(), and the mask.
if (!isMainThread) await import('./base/native.js');
else if (!(await isOnGrant())) {
  try {
    await acquire();
  } catch (error) {
    const { code, message } = error as Error & { code?: string };
    process.stderr.write(`numalign/preload: ${message}${code === undefined ? '' : ` [${code}]`}\n`);
    if (code === 'ERR_STATE_FOLDER') {
      process.stderr.write(
        `numalign/preload: NUMALIGN_MANAGER='{"stateDir": "/some/folder"}' uses another folder\n`,
      );
    }
    process.exit(1);
  }
}
