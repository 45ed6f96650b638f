// Prints at the end of the process the CPU time of all its threads, in microseconds.
process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  console.log(user + system);
});
