// A child of a grant with the preload: what it can do with the grant, and that it may end.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { affinity } from 'numalign/diagnostics';
import { grant, manager } from 'numalign/preload';

const ended = (started) => new Promise((resolve) => started.once('exit', resolve));
const attempts = {
  pin: () => grant.pin(),
  placeThreads: () => grant.placeThreads({ pool: 'one-to-one' }),
  worker: () => ended(grant.worker('', { eval: true })),
  spawn: () => ended(grant.spawn('true')),
  fork: () => ended(grant.fork('data:text/javascript,', { execArgv: ['--version'], silent: true })),
  buffer: () => grant.buffer('4Ki'),
  resize: () => grant.resize({ cpu: 1 }),
  transfer: () => grant.transfer(),
  handOver: () => grant.handOver(),
  unpin: () => grant.unpin(),
  release: () => grant.release(),
};
const outcomes = {};
for (const [name, attempt] of Object.entries(attempts)) {
  try {
    await attempt();
    outcomes[name] = 'done';
  } catch ({ code }) {
    outcomes[name] = code;
  }
}
// Members are named by their process.
const members = readdirSync(join(manager.stateDir, 'members'));
process.send({
  uid: grant.uid,
  isOwner: manager.grants().length === 1,
  isMember: members.some((name) => name.startsWith(`p${process.pid}-`)),
  mask: String(affinity()),
  outcomes,
});
process.disconnect();
