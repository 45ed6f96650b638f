// pin: threads of this process on CPUs, which are named or acquired for it.
import { invalidOption } from './base/check-options.js';
import type { EmptyGrant, Optional } from './empty-grant.js';
import type { Grant } from './grant.js';
import { type PinOptions, type PinResult, pinToCpus } from './machine/affinity.js';
import type { CpuSet } from './machine/cpu-set.js';
import { type PinAcquireOptions, pinToGrant } from './pin-to-grant.js';

/**
 * Acquires exclusive CPUs and runs this process on them: opens the machine's manager, acquires, and
 * pins every thread, with memory from the CPUs' NUMA nodes preferred. The grant is released, and the
 * manager closed, by {@link Grant.release}, or when the process has nothing more to do; where the
 * process ends in another way, the grant ends with it. With `optional: true` it is an
 * {@link EmptyGrant} where there is none to be had, and the process stays where it is.
 * @throws as {@link openManager}, {@link Manager.acquire}, {@link Grant.pin} and
 *   {@link Grant.placeThreads}: nothing is held and nothing is open then
 */
export function pin(request: Optional<PinAcquireOptions>): Promise<Grant | EmptyGrant>;
export function pin(request: PinAcquireOptions): Promise<Grant>;
/**
 * Lets threads run on these CPUs only, at once, and reads back what the kernel made of it. Grants
 * nothing: others may use the CPUs too.
 * @throws ERR_SYSCALL where no thread could be moved (EINVAL: none of the CPUs may be used here;
 *   EPERM; ESRCH: no such thread), ERR_INVALID_ARGUMENT for an empty set, ERR_INVALID_LIST.
 */
export function pin(cpus: CpuSet | string, options?: PinOptions): PinResult;
export function pin(
  target: CpuSet | string | PinAcquireOptions,
  options?: PinOptions,
): PinResult | Promise<Grant | EmptyGrant> {
  return isRequest(target) ? pinProcess(target, options) : pinToCpus(target, options);
}

// Whatever else it is, it is to be CPUs.
const isRequest = (target: unknown): target is PinAcquireOptions =>
  typeof target === 'object' && target !== null && !(Symbol.iterator in target);

async function pinProcess(request: PinAcquireOptions, options: unknown): Promise<Grant | EmptyGrant> {
  if (options !== undefined) invalidOption('options', options, 'left out: a request has all of them');
  return (await pinToGrant(request)).grant;
}
