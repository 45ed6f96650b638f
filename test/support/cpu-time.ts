/**
 * The CPU time that synchronous work takes, in milliseconds: how long it lasts on a busy machine
 * says nothing of it.
 */
export function cpuTimeOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
