// Prints at the end of the process the CPU time that all its threads took, in microseconds.
process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  console.log(user + system);
});
