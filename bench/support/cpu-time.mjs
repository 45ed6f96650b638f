// CPU time. A module of its own, so that processes that start fresh load nothing else.

/** The CPU time of all threads of this process until the action is done, in nanoseconds. */
export async function cpuOf(action) {
  const begin = process.cpuUsage();
  await action();
  const { user, system } = process.cpuUsage(begin);
  return (user + system) * 1000;
}
