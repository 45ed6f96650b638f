// Preloading: what numalign/preload does before a program begins.
import { isMainThread } from 'node:worker_threads';
import type { EmptyGrant } from './grants/empty-grant.js';
import type { Grant } from './grants/grant.js';
import type { Manager } from './managers/manager.js';
import type { PinAcquireOptions } from './managers/pin-to-grant.js';

let manager: Manager | undefined;
let grant: Grant | EmptyGrant | undefined;

function fromVariable(name: string, text: string | undefined): object | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // The error below reports it.
  }
  throw new Error(`${name} must be a JSON object, such as '{"cpu": 1}', not '${text}'`);
}

async function acquire(): Promise<void> {
  const { variable, withName } = await import('./children/program-variables.js');
  const optionsIn = (name: string) => fromVariable(name, variable(name));
  const acquireOptions = optionsIn('NUMALIGN_ACQUIRE');
  if (acquireOptions === undefined)
    throw new Error(`NUMALIGN_ACQUIRE is not set: it says what to acquire, such as '{"cpu": 1}'`);
  const request = {
    ...withName(acquireOptions),
    manager: optionsIn('NUMALIGN_MANAGER') ?? {},
    threads: optionsIn('NUMALIGN_THREADS') ?? {},
  };
  const { enter } = await import('./opening/open-manager.js');
  const result = await (await enter()).pinToGrant(request as PinAcquireOptions);
  ({ manager, grant } = result);
  if (result.manager === undefined) {
    const { message, code } = result.grant.reason;
    process.stderr.write(`numalign/preload: no exclusive CPUs, which are optional: ${message} [${code}]\n`);
    return;
  }
  const { childVariables } = await import('./children/child-variables.js');
  const acquiredBy = { NUMALIGN_PRELOAD_PID: String(process.pid) };
  Object.assign(process.env, childVariables(result.grant, result.manager.stateDir), acquiredBy);
}

// A cluster worker should work in parallel with its primary, so that it needs other CPUs.
async function isWorkerOfHolder(): Promise<boolean> {
  if (process.env.NUMALIGN_PRELOAD_PID !== String(process.ppid)) return false;
  const { default: cluster } = await import('node:cluster');
  return cluster.isWorker;
}

// Finds the grant that this process was started for. The manager does nothing else: it neither
// moves this process nor wakes it. A process that others start inherits the variables but no lock,
// and rarely uses the grant: it does not spend time on this.
async function find(uid: string): Promise<void> {
  const { NUMALIGN_STATE_DIR: stateDir, NUMALIGN_PRELOAD_PID: acquiredBy } = process.env;
  if (!stateDir || acquiredBy !== '') return;
  const { hasState } = await import('./state/folder/folder.js');
  if (!hasState(stateDir)) return;
  const { openManager } = await import('./opening/open-manager.js');
  const quiet = { sharedMember: false, cpuManagerReconcilePeriod: 0, besideKubelet: true };
  const opened = await openManager({ stateDir, ...quiet });
  try {
    grant = opened.grant(uid);
    manager = opened;
  } catch (error) {
    opened.close();
    throw error;
  }
}

const REMEDIES: Readonly<Record<string, string>> = {
  ERR_STATE_FOLDER: `NUMALIGN_MANAGER='{"stateDir": "/some/folder"}' uses another folder`,
};
const NO_ROOM = ['ERR_INSUFFICIENT_CPUS', 'ERR_SHARED_POOL_FULL', 'ERR_TOPOLOGY_AFFINITY'];
const REMEDY_OF_WORKER = `each worker of node:cluster takes CPUs of its own, beside those of its primary. Start fewer workers, ask for fewer CPUs, or have them wait: NUMALIGN_ACQUIRE='{"cpu": 1, "wait": true}'`;

function report(error: unknown, isWorker: boolean): void {
  const { code = '', message } = error as Error & { code?: string };
  const remedy = isWorker && NO_ROOM.includes(code) ? REMEDY_OF_WORKER : REMEDIES[code];
  const lines = [`${message}${code === '' ? '' : ` [${code}]`}`, ...(remedy === undefined ? [] : [remedy])];
  for (const line of lines) process.stderr.write(`numalign/preload: ${line}\n`);
}

// A child inherits NUMALIGN_GRANT, and with it the mask of its parent.
async function begin(): Promise<void> {
  const uid = process.env.NUMALIGN_GRANT;
  const isWorker = uid !== undefined && (await isWorkerOfHolder());
  // The process runs on the CPUs even if the grant cannot be found.
  if (uid !== undefined && !isWorker) return find(uid).catch(() => {});
  try {
    await acquire();
  } catch (error) {
    report(error, isWorker);
    process.exit(1);
  }
}

/** The grant that this process is to run on, if it has one, and its manager. */
export async function preload() {
  // Workers inherit --import. Their parent places them: here they only load the addon, which must
  // know its threads.
  if (isMainThread) await begin();
  else await import('./base/native.js');
  return { manager, grant };
}
