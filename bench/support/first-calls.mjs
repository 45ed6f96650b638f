// The CPU time of the first calls of a process, in nanoseconds, as JSON: of a machine that hwloc's
// synthetic text describes, or of this one, which the process also pins itself on.
import { cpuOf } from './cpu-time.mjs';

const { stateDir, machine } = JSON.parse(process.argv[2]);
const WARM_UP = 400;
const HOT = 200;

const times = {};
async function timed(name, action) {
  let result;
  times[name] = await cpuOf(async () => {
    result = await action();
  });
  return result;
}

const { openManager } = await timed('import', () => import('../../dist/index.js'));
const { discover } = await import('../../dist/entries/topology.js');
const topology = machine === null ? undefined : await discover({ synthetic: machine });
const manager = await timed('open', () => openManager({ stateDir, ...(topology && { topology }) }));
const acquire = () => manager.acquire({ cpu: 1 });
const grant = await timed('first acquire', acquire);
if (machine === null) await timed('first pin', () => grant.pin());
await timed('first release', () => grant.release());
const second = await timed('second acquire', acquire);
await timed('second release', () => second.release());

async function pairs(count) {
  for (let i = 0; i < count; i++) {
    const each = await acquire();
    await each.release();
  }
}
await pairs(WARM_UP);
const all = await cpuOf(() => pairs(HOT));
times['hot acquire and release'] = all / HOT;
process.stdout.write(JSON.stringify(times), () => process.exit());
