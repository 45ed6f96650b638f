// pin: puts threads of this process on CPUs that you name, or that it acquires.
import { invalidOption } from '../base/check-options.js';
import type { EmptyGrant, Optional } from '../grants/empty-grant.js';
import type { Grant } from '../grants/grant.js';
import { type PinOptions, type PinResult, pinToCpus } from '../machine/affinity.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { PinAcquireOptions } from '../managers/pin-to-grant.js';
import { copied, enter } from './open-manager.js';

/**
 * Acquires exclusive CPUs and runs this process on them: opens the manager, acquires, and pins
 * every thread, with memory of the grant's NUMA nodes preferred. {@link Grant.release} also closes
 * the manager; so does the process when it has nothing more to do. The grant ends with the process
 * in any case. With `optional: true`, the result is an {@link EmptyGrant} if there is no room, and
 * the process stays where it is.
 * @throws as {@link openManager}, {@link Manager.acquire}, {@link Grant.pin} and
 *   {@link Grant.placeThreads}; nothing is held or open then
 */
export function pin(request: Optional<PinAcquireOptions>): Promise<Grant | EmptyGrant>;
export function pin(request: PinAcquireOptions): Promise<Grant>;
/**
 * Restricts threads to these CPUs at once with sched_setaffinity(2), and reads back what the kernel
 * did. It grants nothing: other processes may use the CPUs too.
 * @throws ERR_SYSCALL if no thread could be moved (EINVAL: no usable CPU; EPERM; ESRCH: no such
 *   thread); ERR_INVALID_ARGUMENT for an empty set; ERR_INVALID_LIST
 */
export function pin(cpus: CpuSet | string, options?: PinOptions): PinResult;
export function pin(
  target: CpuSet | string | PinAcquireOptions,
  options?: PinOptions,
): PinResult | Promise<Grant | EmptyGrant> {
  return isRequest(target) ? pinProcess(target, options) : pinToCpus(target, options);
}

// Anything else should be CPUs, and is checked as such.
const isRequest = (target: unknown): target is PinAcquireOptions =>
  typeof target === 'object' && target !== null && !(Symbol.iterator in target);

async function pinProcess(request: PinAcquireOptions, options: unknown): Promise<Grant | EmptyGrant> {
  if (options !== undefined) invalidOption('options', options, 'left out: the request has the options');
  const given = copied(request);
  return (await (await enter()).pinToGrant(given)).grant;
}
