// pinToGrant: acquires CPUs for this process and pins it to them. The caller has nothing to close.
import { firstNodes } from '../account/pod-holdings.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import { type EmptyGrant, emptyGrant, type Optional } from '../grants/empty-grant.js';
import type { Grant } from '../grants/grant.js';
import { onceEnded } from '../grants/release.js';
import { MANAGER_OPTIONS, type ManagerOptions } from '../input/config.js';
import { ACQUIRE_OPTIONS, type AcquireOptions } from '../input/requests/request-options.js';
import { option } from '../input/values/option-values.js';
import type { Topology } from '../machine/topology.js';
import { pinMemory } from '../threads/memory.js';
import type { PlaceThreadsOptions } from '../threads/placement.js';
import { EmptyManager } from './empty-manager.js';
import type { Manager } from './manager.js';
import { ManagerView } from './manager-view.js';
import { openMachine } from './open-machine.js';

/** The request that {@link pin} takes. */
export interface PinAcquireOptions extends AcquireOptions {
  /**
   * Options of {@link openManager}.
   * @default none
   */
  manager?: ManagerOptions;
  /**
   * Where each kind of thread runs, as {@link Grant.placeThreads} takes it.
   * @default all threads on all CPUs; on several isolated CPUs each thread on one
   */
  threads?: Omit<PlaceThreadsOptions, 'replace'>;
  /**
   * Takes over threads that are pinned for another grant. Otherwise they cause ERR_ALREADY_PINNED.
   * @default `false`
   */
  replace?: boolean;
}

/** The grant that this process runs on, and its manager, which closes with the grant. */
interface PinnedProcess {
  readonly manager: Manager;
  readonly grant: Grant;
}

/** The result of an optional request without room. */
interface UnpinnedProcess {
  readonly manager: undefined;
  readonly grant: EmptyGrant;
}

/** @throws as {@link pin}, and leaves nothing held or open */
export async function pinToGrant(request: PinAcquireOptions): Promise<PinnedProcess | UnpinnedProcess> {
  const { acquire, ...how } = parse(request);
  const required = { ...acquire, optional: false };
  try {
    return await openAndPin({ acquire: required, ...how });
  } catch (error) {
    const grant = emptyGrant(acquire, error);
    // A mistake in `threads` is an error without a grant too.
    if (how.threads !== undefined) await grant.placeThreads(how.threads);
    return { manager: undefined, grant };
  }
}

async function openAndPin({
  options,
  threads,
  replace,
  acquire,
}: ReturnType<typeof parse>): Promise<PinnedProcess> {
  const manager = (await openMachine(options)) as Manager;
  try {
    const grant = await manager.acquire(acquire);
    try {
      await runOn(manager.topology, grant, threads, replace);
    } catch (error) {
      // The caller must get the first error.
      await grant.release().catch(() => {});
      throw error;
    }
    endTogether({ manager, grant }, (acquire.owner ?? 'process') === 'process');
    return { manager, grant };
  } catch (error) {
    manager.close();
    throw error;
  }
}

function parse(request: PinAcquireOptions) {
  checkOptions(request, [...ACQUIRE_OPTIONS, 'manager', 'threads', 'replace'], 'pin', (key) =>
    MANAGER_OPTIONS.includes(key) ? `pin({ manager: { ${key} } })` : undefined,
  );
  const { manager: options = {}, threads, replace = false, ...acquire } = request;
  option.flag(replace, 'replace');
  const { optional = false } = acquire as Partial<Optional<AcquireOptions>>;
  option.flag(optional, 'optional');
  if (options instanceof ManagerView || options instanceof EmptyManager)
    invalidOption('manager', options, 'options of openManager; an open manager has acquire() of its own');
  if ((options as { readOnly?: unknown } | null)?.readOnly)
    invalidOption('manager.readOnly', true, 'left out: a manager that only reads acquires nothing');
  return { options, threads, replace, acquire };
}

async function runOn(
  topology: Topology,
  grant: Grant,
  threads: PlaceThreadsOptions | undefined,
  replace: boolean,
) {
  if (threads === undefined && !(grant.cpus.size > 1 && grant.isIsolated)) {
    grant.pin({ replace });
    return;
  }
  // Sets the memory policy before libuv's pool starts and inherits it. pin() of this thread cannot
  // do that: a group of cgroup v2 takes whole processes only, and placeThreads() moves this one.
  const booked = firstNodes(topology, grant.memory);
  const nodes = booked.isEmpty ? grant.memoryNodes : booked;
  pinMemory({ grant: grant.uid, mode: 'preferred', nodes, from: undefined });
  await grant.placeThreads({ replace, ...threads });
}

// A release when the process has nothing more to do leaves no cgroup or setting behind, even if no
// other manager listens. If the process ends in another way, the kernel tells those that do.
function endTogether({ manager, grant }: PinnedProcess, endsWithProcess: boolean): void {
  // It fails if a child has the grant by then.
  const release = () => void grant.release().catch(() => {});
  if (endsWithProcess) process.once('beforeExit', release);
  onceEnded(grant.uid, () => {
    process.off('beforeExit', release);
    manager.close();
  });
}
