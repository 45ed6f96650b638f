// A program as the scenario life starts it: an empty one, or one that imports the package, pins
// itself or acquires a CPU.
const [what, stateDir] = process.argv.slice(2);
const SETTINGS = { stateDir, reservedSystemCPUs: '0' };

if (what !== undefined) {
  const { openManager, pin } = await import('../../dist/index.js');
  if (what === 'pin') await pin({ cpu: 1, manager: SETTINGS });
  if (what === 'acquire') {
    const manager = await openManager(SETTINGS);
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
  }
}
process.exit();
