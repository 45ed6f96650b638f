// needs: machine
// Audits of real grants, on this machine and its kernel.

import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { scanTasks, TaskScan } from '../../lib/audit/task-scan.js';
import { affinity, type GrantAudit, threadId } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, type Grant, openManager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { spinningOrphan } from '../support/orphan.js';
import { canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';

async function acquire(options: { sharedMember?: boolean } = {}) {
  const manager = await openManager({ stateDir: makeStateDir(), ...options });
  const grant = await manager.acquire({ cpu: 1 });
  onTestFinished(async () => {
    await grant.release();
    manager.close();
  });
  return { manager, grant };
}

function spin(milliseconds: number): void {
  for (const end = Date.now() + milliseconds; Date.now() < end; );
}

/** Spins between two looks, until the second finds the expected result. */
function spinUntil(grant: Grant, found: (audit: GrantAudit) => boolean): GrantAudit {
  for (const deadline = Date.now() + 20_000; ; ) {
    spin(50);
    const audit = grant.audit();
    if (found(audit)) return audit;
    if (Date.now() > deadline) throw new Error(`not found: ${JSON.stringify(audit)}`);
  }
}

const mainOf = (audit: GrantAudit) => audit.threads.find(({ tid }) => tid === threadId())!;
const foreignOf = (audit: GrantAudit) => audit.cpus.flatMap(({ foreign }) => foreign!);

/** [run time, run delay, timeslices] of the main thread. */
function schedstat(): number[] {
  return readFileSync(`/proc/self/task/${threadId()}/schedstat`, 'latin1').trim().split(' ').map(Number);
}

describe('grant.audit', () => {
  it('reports the wait of a thread for a competitor on its CPU, the competitor, and its end', async () => {
    const { grant } = await acquire();
    grant.pin();
    const competitor = spinningOrphan(grant.cpus);
    const competitorIn = (now: GrantAudit) => foreignOf(now).find(({ pid }) => pid === competitor.pid);
    // Other tasks may make the thread wait too, before the competitor does.
    const audit = spinUntil(
      grant,
      (now) =>
        competitorIn(now)?.command === 'sh' &&
        mainOf(now).runDelayNs! > 50e6 &&
        mainOf(now).involuntarySwitches! > 0,
    );
    expect(mainOf(audit)).toMatchObject({
      pid: process.pid,
      tid: process.pid,
      role: 'main',
      cpus: grant.cpus,
    });
    expect(mainOf(audit).involuntarySwitches).toBeGreaterThan(0);
    expect(audit.totals.runDelayNs).toBeGreaterThanOrEqual(mainOf(audit).runDelayNs!);
    expect(competitorIn(audit)).toMatchObject({
      tid: competitor.pid,
      command: 'sh',
      kind: 'user',
      bound: false,
    });
    expect(audit.totals.foreignTasks).toBeGreaterThan(0);
    await competitor.end();
    grant.audit();
    expect(foreignOf(grant.audit()).map(({ pid }) => pid)).not.toContain(competitor.pid);
  });

  it('reports the kernel’s figures since the pin', async () => {
    const { grant } = await acquire();
    const before = schedstat();
    grant.pin();
    const pinned = schedstat();
    spin(50);
    const earlier = schedstat();
    const { runTimeNs, runDelayNs, timeslices } = mainOf(grant.audit());
    const later = schedstat();
    [runTimeNs, runDelayNs, timeslices].forEach((value, i) => {
      expect(value).toBeGreaterThanOrEqual(earlier[i]! - pinned[i]!);
      expect(value).toBeLessThanOrEqual(later[i]! - before[i]!);
    });
  });

  it('reports the readable figures of the CPUs, and null for others', async () => {
    const { grant } = await acquire();
    grant.pin();
    const { cpus, totals, enforcement, since, elapsedMs } = spinUntil(grant, (now) => {
      const { busyNs, interrupts, softirqs } = now.cpus[0]!;
      return busyNs! > 0 && interrupts! > 0 && softirqs! > 0;
    });
    const [cpu] = grant.cpus;
    const hasFrequency = existsSync(`/sys/devices/system/cpu/cpu${cpu}/cpufreq/scaling_cur_freq`);
    expect(cpus).toMatchObject([{ cpu }]);
    expect(cpus[0]!.interrupts).toBeGreaterThan(0);
    expect(cpus[0]!.interrupts).toBeGreaterThanOrEqual(cpus[0]!.deviceInterrupts!);
    expect(cpus[0]!.softirqs).toBeGreaterThan(0);
    expect(cpus[0]!.frequencyKHz === null).toBe(!hasFrequency);
    expect(totals.interrupts).toBe(cpus[0]!.interrupts);
    expect(enforcement).toBe(grant.enforcement);
    expect(Date.parse(since)).toBeLessThanOrEqual(Date.now());
    expect(elapsedMs).toBeGreaterThan(0);
  });

  it('leaves out parts that are not requested, and reads memory only on request', async () => {
    const { grant } = await acquire();
    grant.pin();
    const little = grant.audit({ foreign: false, interrupts: false });
    expect(little.cpus[0]).toMatchObject({
      foreign: null,
      interrupts: null,
      deviceInterrupts: null,
      softirqs: null,
    });
    expect(little).toMatchObject({ seesAllTasks: null, offNodePages: null, offNodeBytes: null });
    expect(little.totals).toMatchObject({ foreignTasks: null, interrupts: null });
    expect(mainOf(little).tid).toBe(process.pid);
    const hasNumaMaps = existsSync('/proc/self/numa_maps');
    expect(grant.audit({ memory: true }).offNodePages !== null).toBe(hasNumaMaps);
  });

  it('starts again on request', async () => {
    const { grant } = await acquire();
    grant.pin();
    spin(30);
    const fresh = grant.audit({ reset: true });
    expect(fresh).toMatchObject({ elapsedMs: 0, totals: { runTimeNs: 0, timeslices: 0, interrupts: 0 } });
    expect(Date.parse(fresh.since)).toBeGreaterThan(Date.now() - 10_000);
    expect(grant.audit().since).toBe(fresh.since);
  });

  it("counts a child of the owner among the grant's threads, and its work after its end", async () => {
    const { grant } = await acquire();
    grant.pin();
    const child = grant.spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    const ofChild = (audit: GrantAudit) => audit.threads.find(({ pid }) => pid === child.pid);
    const audit = spinUntil(grant, (now) => (ofChild(now)?.runTimeNs ?? 0) > 0);
    expect(ofChild(audit)).toMatchObject({ tid: child.pid, role: 'main', cpus: grant.cpus });
    expect(foreignOf(audit).map(({ pid }) => pid)).not.toContain(child.pid);
    child.kill('SIGKILL');
    await ended;
    const after = grant.audit();
    expect(ofChild(after)).toBeUndefined();
    expect(after.totals.endedThreads).toBeGreaterThan(0);
    expect(after.totals.runTimeNs).toBeGreaterThanOrEqual(audit.totals.runTimeNs!);
  });

  it('covers no thread of a shared member, which has left the CPUs, until it is pinned', async () => {
    const { grant } = await acquire();
    expect(grant.audit().threads).toEqual([]);
    grant.pin({ threads: 'current' });
    expect(grant.audit().threads.map(({ tid }) => tid)).toEqual([threadId()]);
  });

  it('covers the threads that are confined to the CPUs, or else the whole process', async () => {
    const { grant } = await acquire({ sharedMember: false });
    const { threads } = grant.audit();
    expect(mainOf(grant.audit()).cpus).toEqual(affinity());
    expect(threads.length).toBeGreaterThan(1);
    grant.pin({ threads: 'current' });
    expect(grant.audit().threads.map(({ tid }) => tid)).toEqual([threadId()]);
  });

  it('refuses unknown options, a released grant and a simulated machine', async () => {
    const { manager, grant } = await acquire();
    expect(thrownBy(() => grant.audit({ foreing: true } as object))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { nearest: 'foreign' },
    });
    expect(thrownBy(() => grant.audit({ reset: 1 } as object))).toMatchObject({ code: 'ERR_INVALID_OPTION' });
    await grant.release();
    expect(thrownBy(() => grant.audit())).toMatchObject({ code: 'ERR_GRANT_RELEASED' });
    expect(thrownBy(() => manager.audit(grant.uid))).toMatchObject({ code: 'ERR_UNKNOWN_GRANT' });
    const simulated = await openManager({ topology: await discover({ synthetic: 'core:4 pu:1' }) });
    const other = await simulated.acquire({ cpu: 1 });
    expect(await errorOf(() => other.audit())).toMatchObject({ code: 'ERR_SIMULATED_MACHINE' });
  });
});

// The agent's answer is JSON, in which NaN would look like null: so what is not null is looked at
// too.
describe.runIf(canUnshare)('an audit with a restricted view', () => {
  async function auditUnder(prefix: string[]) {
    const agent = new Agent(prefix);
    await agent.tell('open', { stateDir: makeStateDir() });
    const { uid } = await agent.tell('acquire', { cpu: 1 });
    await agent.tell('pin', { uid });
    return agent.tell('audit', { uid });
  }

  it('has null for unreadable figures', async () => {
    const hide =
      'for file in interrupts stat; do mount --bind /dev/null /proc/$file || exit; done; exec "$@"';
    const { cpus, totals, threads } = await auditUnder(['unshare', '--mount', 'sh', '-c', hide, 'sh']);
    const hidden = { interrupts: null, deviceInterrupts: null, busyNs: null, idleNs: null, stealNs: null };
    expect(cpus).toMatchObject([{ ...hidden, softirqs: expect.any(Number) }]);
    expect(totals).toMatchObject({ ...hidden, runTimeNs: expect.any(Number) });
    expect(threads[0]).toMatchObject({
      runDelayNs: expect.any(Number),
      involuntarySwitches: expect.any(Number),
    });
  });

  it('says that others may be hidden from a pid namespace', async () => {
    const inside = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const { seesAllTasks, threads, cpus } = await auditUnder(inside);
    expect(seesAllTasks).toBe(false);
    expect(threads[0]).toMatchObject({ pid: 1, tid: 1, role: 'main' });
    expect(cpus[0].foreign).toEqual([]);
  });
});

describe('manager.audit', () => {
  it('reports the grant of another process, since the first look', async () => {
    const stateDir = makeStateDir();
    const agent = new Agent();
    const pid = await agent.tell('open', { stateDir });
    const { uid } = await agent.tell('acquire', { cpu: 1 });
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    expect(manager.audit(uid)).toMatchObject({ grant: uid, threads: [], elapsedMs: 0 });
    await agent.tell('pin', { uid });
    const { threads } = manager.audit(uid);
    expect(threads.find(({ tid }) => tid === pid)).toMatchObject({ pid, role: 'main' });
    expect(threads.every((thread) => thread.pid === pid && thread.cpus.equals(manager.grant(uid).cpus))).toBe(
      true,
    );
    // Where its process ends, the grant does.
    await agent.tell('unpin', { uid });
    const after = manager.audit(uid);
    expect(after.threads).toEqual([]);
    expect(after.totals.endedThreads).toBeGreaterThanOrEqual(threads.length);
  });
});

const all = (await discover()).cpus;
const scan = scanTasks(all);
const tasks = scan.on(all);

describe('the scan', () => {
  it.skipIf(!scan.seesAll)('marks kernel threads, and those of them that are bound to their CPU', () => {
    const named = (pattern: RegExp) => tasks.filter(({ command }) => pattern.test(command));
    expect(named(/^migration\/\d+$/).length).toBeGreaterThan(0);
    expect(named(/^migration\/\d+$/).every(({ isKernel, isBound }) => isKernel === 1 && isBound === 1)).toBe(
      true,
    );
    expect(named(/^kthreadd$/)).toMatchObject([{ pid: 2, isKernel: 1, isBound: 0 }]);
  });

  it('finds this process below the one that started it', () => {
    expect(tasks.find(({ tid }) => tid === process.pid)).toMatchObject({
      pid: process.pid,
      isKernel: 0,
    });
    expect(scan.below([process.pid])).toContain(process.pid);
    expect(scan.below([process.ppid])).toContain(process.pid);
    expect(scan.below([process.pid])).not.toContain(process.ppid);
    // If all CPUs are scanned, every task is confined to them.
    expect(scan.isConfined(process.pid)).toBe(true);
  });

  it('ends even if processes seem to have started each other', () => {
    // A parent's id may be given to a child of its child while /proc is read.
    const parents = Float64Array.of(10, 11, 11, 10, 12, 11);
    const odd = new TaskScan({ rows: new Float64Array(), commands: [], parents, seesAll: true });
    expect([...odd.below([12])]).toEqual([12]);
    expect([...odd.below([10])].sort()).toEqual([10, 11, 12]);
  });

  it('divides all tasks among their CPUs', () => {
    const byCpu = [...all].map((cpu) => scan.on(CpuSet.from([cpu])));
    expect(byCpu.flat().length).toBe(tasks.length);
    for (const [i, cpu] of [...all].entries())
      expect(byCpu[i]!.every(({ processor }) => processor === cpu)).toBe(true);
  });
});

describe('manager.audits', () => {
  it('begins with the first look at a grant, and counts since the last one', async () => {
    const { manager, grant } = await acquire();
    grant.pin();
    const [first] = await manager.audits();
    expect(first).toMatchObject({ grant: grant.uid, elapsedMs: 0 });
    spin(50);
    const [second] = await manager.audits();
    expect(mainOf(second!).runTimeNs).toBeGreaterThan(0);
    spin(50);
    const [third] = await manager.audits();
    expect(third!.elapsedMs).toBeLessThan(second!.elapsedMs + grant.audit().elapsedMs);
    expect(third!.since).not.toBe(second!.since);
  });

  it('leaves out the grants of dead owners', async () => {
    const stateDir = makeStateDir();
    const owner = new Agent();
    await owner.tell('open', { stateDir });
    const { uid } = await owner.tell('acquire', { cpu: 1 });
    const view = await openManager({ stateDir, readOnly: true });
    onTestFinished(() => view.close());
    expect(await view.audits()).toMatchObject([{ grant: uid }]);
    await owner.kill();
    expect(await view.audits()).toEqual([]);
  });

  it('is refused on a simulated machine', async () => {
    const manager = await openManager({ topology: await discover({ synthetic: 'core:2 pu:1' }) });
    onTestFinished(() => manager.close());
    expect(await errorOf(() => manager.audits())).toMatchObject({ code: 'ERR_SIMULATED_MACHINE' });
  });
});
