// The machine's settings as commands print them as JSON. Pure.
import type { StateView } from './state-view.js';

export function settingsJson({
  managed,
  managesAll,
  reserved,
  strict,
  isolated,
  isolatedByKernel,
  assignments,
}: StateView) {
  const { reservedMemory, cgroupRoot } = assignments.settings;
  return {
    ...{ managedCPUs: managed, managesAll, reservedSystemCPUs: reserved, strictCPUReservation: strict },
    ...{ isolatedCPUs: isolated, isolatedByKernel, reservedMemory, cgroupRoot },
  };
}
