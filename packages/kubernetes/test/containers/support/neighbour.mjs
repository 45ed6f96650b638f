// neighbour.mjs FOLDER: another process of the machine that takes CPUs and gives them back, outside
// of all containers. Each line of its input is `acquire` or `release`; each line of its output is
// JSON: { at, cpus }: the time in milliseconds of the epoch, and its CPUs.
import { createInterface } from 'node:readline';
import { openManager } from 'numalign';

const manager = await openManager({ stateDir: process.argv[2], sharedMember: false });
let grant;
const verbs = {
  async acquire() {
    grant = await manager.acquire({ cpu: 1, enforcement: 'members' });
  },
  release: () => grant.release(),
};
for await (const verb of createInterface({ input: process.stdin })) {
  await verbs[verb]();
  process.stdout.write(`${JSON.stringify({ at: Date.now(), cpus: String(grant.cpus) })}\n`);
}
