// Pins itself, starts a child on its grant, tells both, and lives until it is ended.
import { pin } from 'numalign';

const [, , stateDir, child] = process.argv;
const grant = await pin({ cpu: 1, manager: { stateDir } });
grant.fork(child).once('message', ({ mask, pid }) => {
  process.send({ uid: grant.uid, cpus: String(grant.cpus), mask, pid });
});
setInterval(() => {}, 1 << 30);
