// The measured process of the scenario isolation. It takes a CPU, then spins, sleeps, and waits in
// the event loop, each for a third of the time. It prints what it noticed of other processes, which
// of them were on its CPU, and the grant's audit.
import { readdirSync, readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { openManager } from '../../dist/index.js';
import { cpuTime, ownTime } from './machine-load.mjs';
import { spread } from './measure.mjs';
import { yardstick } from './yardstick.mjs';

// Longer than the clock itself takes: another process ran.
const LEAST_GAP_NS = 20_000;
const MOST_GAPS = 1e6;
const SLEEP_NS = 200_000;
// If the other processes leave fewer samples, it runs longer until there are this many.
const ENOUGH = 1000;
const LONGER = 4;

const { manager: options, request, members, pin, seconds } = JSON.parse(process.argv[2]);
const partMs = (seconds * 1000) / 3;

// Whether to continue with this many samples.
function goOn(begin, count) {
  const took = performance.now() - begin;
  return took < partMs || (count < ENOUGH && took < LONGER * partMs);
}

function spin() {
  const gaps = new Float64Array(MOST_GAPS);
  const [begin, waited] = [performance.now(), yardstick.runDelay()];
  const count = yardstick.spinGaps(gaps, partMs * 1e6, LEAST_GAP_NS);
  const [tookMs, waitedNs] = [performance.now() - begin, yardstick.runDelay() - waited];
  const found = gaps.subarray(0, Math.min(count, MOST_GAPS));
  const lostNs = found.reduce((sum, gap) => sum + gap, 0);
  return {
    gaps: spread(found),
    gapsASecond: (count * 1000) / tookMs,
    lost: lostNs / (tookMs * 1e6),
    waited: waitedNs / (tookMs * 1e6),
  };
}

// A few at a time, since their duration depends on the other processes.
function sleep() {
  const [late, waited] = [[], []];
  const begin = performance.now();
  while (goOn(begin, late.length)) {
    const [times, delays] = [new Float64Array(16), new Float64Array(16)];
    yardstick.wakeUps(times, delays, SLEEP_NS);
    late.push(...times);
    waited.push(...delays);
  }
  return { wakeUps: spread(late), runDelays: spread(waited) };
}

// From one timer of 1 ms to the next, as Node reports it.
async function loop() {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const begin = performance.now();
  while (goOn(begin, delay.count)) await pause(1);
  delay.disable();
  const [medianNs, p99Ns, p999Ns, maxNs] = [50, 99, 99.9, 100].map((share) => delay.percentile(share));
  return { eventLoop: { samples: delay.count, medianNs, p99Ns, p999Ns, maxNs } };
}

// Where the threads of this process may run: the main one first.
function placesOfThreads() {
  const places = readdirSync('/proc/self/task').map((tid) => {
    const status = readFileSync(`/proc/self/task/${tid}/status`, 'utf8');
    return { tid: Number(tid), cpus: /^Cpus_allowed_list:\s*(\S+)/m.exec(status)[1] };
  });
  const isMain = ({ tid }) => tid === process.pid;
  return {
    main: places.find(isMain).cpus,
    others: [...new Set(places.filter((each) => !isMain(each)).map(({ cpus }) => cpus))],
  };
}

async function measure(grant) {
  const [cpu] = grant.cpus;
  const [own, all, begin] = [ownTime(), cpuTime(cpu), performance.now()];
  grant.audit({ reset: true });
  const felt = { ...spin(), ...sleep(), ...(await loop()) };
  const audit = grant.audit();
  const tookNs = (performance.now() - begin) * 1e6;
  const now = cpuTime(cpu);
  return {
    cpus: grant.cpus.toString(),
    felt,
    audit,
    threads: placesOfThreads(),
    othersShare: Math.max(0, now.busyNs - all.busyNs - (ownTime() - own)) / tookNs,
    stolenShare: (now.stolenNs - all.stolenNs) / tookNs,
  };
}

const manager = await openManager(options);
try {
  for (const pid of members) await manager.addSharedMember({ pid });
  const grant = await manager.acquire({ cpu: 1, ...request });
  if (pin) grant.pin();
  console.log('begins');
  const answer = await measure(grant);
  await grant.release();
  console.log(JSON.stringify(answer));
} catch (error) {
  if (!['ERR_ENFORCEMENT', 'ERR_CGROUP', 'ERR_MEMBER_UNMOVABLE'].includes(error.code)) throw error;
  console.log(JSON.stringify({ unreached: error.message }));
} finally {
  manager.close();
}
