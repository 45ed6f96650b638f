// Allocation: CPUs that the device plugin has booked before the container is known. Environment
// variables carry the grant from the device plugin's answer to the container's creation. Pure.

/** The uid of the grant. */
export const ALLOCATION_VARIABLE = 'NUMALIGN_ALLOCATION';
/** The CPUs, as Linux lists them. */
export const CPUS_VARIABLE = 'NUMALIGN_CPUS';
/** The uid of a container's own grant. */
export const GRANT_VARIABLE = 'NUMALIGN_GRANT';
/** `resource=id` of each device, separated by commas. */
export const DEVICES_VARIABLE = 'NUMALIGN_DEVICES';

/** The uid of the grant that the device plugin has made for a container; null: it has made none. */
export function allocationOf(env: readonly string[]): string | null {
  const prefix = `${ALLOCATION_VARIABLE}=`;
  return env.find((entry) => entry.startsWith(prefix))?.slice(prefix.length) ?? null;
}
