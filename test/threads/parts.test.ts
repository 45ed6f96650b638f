// needs: machine
// Threads of a part of a grant, on two CPUs: one of the part, one of all other threads.
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { MachineSettings } from '../../lib/account/assignments.js';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { SHARED_CONTAINER } from '../../lib/account/pod-holdings.js';
import { noEnforcer } from '../../lib/enforcement/enforcer.js';
import { affinity, threadId, threads } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/index.js';
import { Ledger } from '../../lib/state/ledger.js';
import { threadsOf } from '../../lib/threads/followers.js';
import type { GrantedThreads } from '../../lib/threads/granted-threads.js';
import { parsePartPin, parsePin, pinTo } from '../../lib/threads/pin.js';
import { placeThreads } from '../../lib/threads/placement.js';
import { leaveGrant } from '../../lib/threads/vacate.js';
import { type GrantWorkerOptions, startWorker } from '../../lib/threads/worker.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { ALL, EVERYTHING, giveEverythingBack } from './everything.js';

const PART = CpuSet.of(ALL.first!);
const REST = ALL.difference(PART);

const SHARED: GrantedThreads = {
  ...EVERYTHING,
  cpus: REST,
  onPart: (part) => ({ ...SHARED, part, cpus: PART }),
};

/** From the record. */
const grantOf = (part: CpuSet, shared: CpuSet) =>
  ({
    uid: EVERYTHING.grant,
    enforcement: { target: null },
    owner: { uuid: EVERYTHING.owner },
    booking: { cpus: ALL },
    containers: [
      { name: 'io', cpus: part },
      { name: SHARED_CONTAINER, cpus: shared },
    ],
  }) as unknown as PodAssignment;
const GRANT = grantOf(PART, REST);

const pin = (target: GrantedThreads, request: ReturnType<typeof parsePin>) =>
  pinTo(target, { ...request, mode: 'none' }, { cpus: ALL, numaNodes: [0], noteRunning: () => {} });
function pinApart(): void {
  pin(SHARED, parsePin({}));
  pin(SHARED.onPart('io'), parsePartPin({}));
}

/** Masks of this thread, and of all others. */
function masks() {
  const others = threads().filter(({ tid }) => tid !== threadId());
  return [String(affinity()), ...new Set(others.map(({ cpus }) => String(cpus)))];
}
const APART = [String(PART), String(REST)];

async function maskOfWorker(options: GrantWorkerOptions, placed?: object): Promise<string> {
  const code = `
    const status = require('node:fs').readFileSync('/proc/thread-self/status', 'utf8');
    require('node:worker_threads').parentPort.postMessage(/Cpus_allowed_list:\\s*(.*)/.exec(status)[1]);
    setInterval(() => {}, 1000);`;
  const worker: Worker = startWorker(SHARED, placed, code, { eval: true, ...options });
  onTestFinished(async () => void (await worker.terminate()));
  return (await once(worker, 'message'))[0];
}

describe.runIf(ALL.size > 1)('threads of a part', () => {
  giveEverythingBack();

  it('are Workers that are born there, and stay when the process is pinned', async () => {
    expect(await maskOfWorker({ part: 'io' })).toBe(String(PART));
    expect(await maskOfWorker({})).toBe(String(REST));
    expect(await maskOfWorker({}, { part: 'io' })).toBe(String(PART));
    const { moved } = pin(SHARED, parsePin({}));
    const workers = threads().filter(({ role }) => role === 'worker');
    expect(workers.map(({ cpus }) => String(cpus)).sort()).toEqual([`${PART}`, `${PART}`, `${REST}`].sort());
    expect(moved.map(({ tid }) => tid)).toContain(threadId());
    expect(affinity()).toEqual(REST);
  });

  it('get only CPUs of the part', () => {
    const worker = () => startWorker(SHARED, undefined, '', { eval: true, part: 'io', cpus: REST });
    expect(thrownBy(worker)).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { option: 'cpus', valid: expect.stringContaining('part io') },
    });
  });

  it('are placed there by their kind, and stay when others are placed', async () => {
    await placeThreads(() => SHARED, { main: { part: 'io' } });
    expect(masks()).toEqual(APART);
    await placeThreads(() => SHARED, {});
    expect(masks()).toEqual(APART);
    pin(SHARED, parsePin({ threads: 'current' }));
    expect(affinity()).toEqual(REST);
    const outside = { main: { part: 'io', cpus: REST } };
    expect(await errorOf(() => placeThreads(() => SHARED, outside))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { option: 'main.cpus' },
    });
  });

  it('are single threads of the process, whose memory is their own', () => {
    expect(parsePartPin({})).toMatchObject({ threads: 'current' });
    for (const [option, value] of [
      ['threads', 'process'],
      ['memory', 'strict'],
      ['threads', 0],
      ['cpus', PART],
    ] as const) {
      const refused = () => pin(SHARED.onPart('io'), parsePartPin({ [option]: value } as never));
      expect(thrownBy(refused)).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    }
  });

  it('follow their part, and all others the rest', () => {
    const { widen, park } = threadsOf(Ledger.open(makeStateDir()), EVERYTHING.grant, GRANT);
    pinApart();
    widen(ALL, grantOf(REST, PART));
    expect(masks()).toEqual([`${REST}`, `${PART}`]);
    widen(ALL, GRANT);
    expect(masks()).toEqual(APART);
    expect(park(ALL).moved.length).toBe(threads().length);
    expect(masks()).toEqual([`${ALL}`, `${ALL}`]);
    widen(ALL, GRANT);
    expect(masks()).toEqual(APART);
  });

  it('stay where they were placed in a part of several CPUs', async () => {
    const { widen } = threadsOf(Ledger.open(makeStateDir()), EVERYTHING.grant, GRANT);
    const wide: GrantedThreads = { ...SHARED, onPart: (part) => ({ ...SHARED, part, cpus: ALL }) };
    await placeThreads(() => wide, { main: { part: 'io', cpus: PART } });
    expect(masks()).toEqual(APART);
    widen(ALL, grantOf(ALL, REST));
    expect(masks()).toEqual(APART);
  });

  it('wait among the others while their part has no CPU', () => {
    const { narrow, widen } = threadsOf(Ledger.open(makeStateDir()), EVERYTHING.grant, GRANT);
    pinApart();
    expect(narrow(REST).moved.map(({ tid }) => tid)).toContain(threadId());
    expect(masks()).toEqual([`${REST}`, `${REST}`]);
    pin(SHARED, parsePin({}));
    widen(ALL, GRANT);
    expect(masks()).toEqual(APART);
  });

  it('leave the grant with all others, and come back if that fails', async () => {
    pinApart();
    const machine = { topology: await discover(), enforcer: noEnforcer() };
    const left = leaveGrant(machine, { cgroupRoot: null } as MachineSettings, GRANT, ALL);
    expect(masks()).toEqual([`${ALL}`, `${ALL}`]);
    left.comeBack();
    expect(masks()).toEqual(APART);
    pin(SHARED, parsePin({}));
    expect(masks()).toEqual(APART);
  });
});
