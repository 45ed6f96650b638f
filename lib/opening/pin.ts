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
 * in any case. `pin(2)` is `pin({ cpu: 2 })`, and `pin()` one CPU. With `optional: true`, the result
 * is an {@link EmptyGrant} if there is no room, and the process stays where it is.
 * @throws as {@link openManager}, {@link Manager.acquire}, {@link Grant.pin} and
 *   {@link Grant.placeThreads}; nothing is held or open then
 */
export function pin(request: Optional<PinAcquireOptions>): Promise<Grant | EmptyGrant>;
export function pin(request?: PinAcquireOptions | number): Promise<Grant>;
/**
 * Restricts threads to these CPUs at once with sched_setaffinity(2), and reads back what the kernel
 * did. It grants nothing: other processes may use the CPUs too.
 * @throws ERR_SYSCALL if no thread could be moved (EINVAL: no usable CPU; EPERM; ESRCH: no such
 *   thread); ERR_INVALID_ARGUMENT for an empty set; ERR_INVALID_LIST
 */
export function pin(cpus: CpuSet | string, options?: PinOptions): PinResult;
export function pin(
  target: CpuSet | string | PinAcquireOptions | number = 1,
  options?: PinOptions,
): PinResult | Promise<Grant | EmptyGrant> {
  const request = typeof target === 'number' ? { cpu: target } : target;
  return isRequest(request) ? pinProcess(request, options) : pinToCpus(request, options);
}

const TARGET = 'a number of CPUs, a request such as { cpu: 2 }, or the ids of CPUs such as "0-3,8"';

function isRequest(target: unknown): target is PinAcquireOptions {
  const isObject = typeof target === 'object' && target !== null;
  if (!isObject && typeof target !== 'string') invalidOption('what pin() takes', target, TARGET);
  return isObject && !(Symbol.iterator in target);
}

async function pinProcess(request: PinAcquireOptions, options: unknown): Promise<Grant | EmptyGrant> {
  if (options !== undefined)
    invalidOption('options', options, 'left out: the request has the options, as in pin({ cpu: 2, name })');
  const given = copied(request);
  return (await (await enter()).pinToGrant(given)).grant;
}
