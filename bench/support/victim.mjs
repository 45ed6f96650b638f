// The measured process of the scenario isolation: takes a CPU, spins, and prints the grant's audit.
import { openManager } from '../../dist/index.js';

const { manager: options, members, pin, seconds } = JSON.parse(process.argv[2]);
const manager = await openManager(options);
for (const pid of members) await manager.addSharedMember({ pid });
const grant = await manager.acquire({ cpu: 1 });
if (pin) grant.pin();
grant.audit({ reset: true });
let audit;
for (let second = 0; second < seconds; second++) {
  const end = performance.now() + Math.min(seconds - second, 1) * 1000;
  while (performance.now() < end);
  audit = grant.audit();
}
await grant.release();
manager.close();
console.log(JSON.stringify(audit));
