// Quiet grants on this machine: interrupts of its devices under traffic, what the kernel refuses, and
// what is restored.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type InterruptRow, parseInterrupts } from '../../lib/doctor/interrupts.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { CpuSet, type Grant, type Manager, openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const RESERVED = CpuSet.of(affinity().first!);
const GENERATOR = '/dev/hwrng';
const DEFAULT_FILE = '/proc/irq/default_smp_affinity';
const QUEUES_FILE = '/sys/devices/virtual/workqueue/cpumask';
const isRoot = process.geteuid?.() === 0;

const rows = () => parseInterrupts(readFileSync('/proc/interrupts', 'utf8')) ?? [];
const sum = ({ counts }: InterruptRow) => [...counts.values()].reduce((all, count) => all + count, 0);
const fileOf = (irq: number) => `/proc/irq/${irq}/smp_affinity_list`;
const read = (path: string) => readFileSync(path, 'utf8').trim();

/** All masks that quiet grants change here. */
const masks = () => [
  ...readdirSync('/proc/irq')
    .filter((name) => /^\d+$/.test(name))
    .map((irq) => read(fileOf(Number(irq)))),
  ...[DEFAULT_FILE, QUEUES_FILE].map(read),
];

async function open(): Promise<Manager> {
  const manager = await openManager({
    ...{ stateDir: makeStateDir(), reservedSystemCPUs: RESERVED, cgroupRoot: null, sharedMember: false },
    cpuManagerReconcilePeriod: 0,
  });
  onTestFinished(async () => {
    for (const { uid } of manager.grants()) await manager.release(uid);
    manager.close();
  });
  return manager;
}

/** Has the random number generator interrupt so often; answers which interrupts have come, and where. */
async function generate(times: number): Promise<readonly InterruptRow[]> {
  const before = new Map(rows().map((row) => [row.irq, row]));
  const device = await openFile(GENERATOR);
  try {
    for (let i = 0; i < times; i++) await device.read(Buffer.alloc(64), 0, 64, null);
  } finally {
    await device.close();
  }
  return rows().map((row) => {
    const counts = [...row.counts].map(
      ([cpu, count]) => [cpu, count - (before.get(row.irq)?.counts.get(cpu) ?? 0)] as const,
    );
    return { ...row, counts: new Map(counts.filter(([, count]) => count > 0)) };
  });
}

const TIMES = 20;

/** An interrupt that comes for each read of the generator, and that may be moved. */
async function generatorInterrupt(): Promise<number | undefined> {
  try {
    const row = (await generate(TIMES)).find((each) => sum(each) >= TIMES);
    if (!row) return undefined;
    writeFileSync(fileOf(row.irq), read(fileOf(row.irq)));
    return row.irq;
  } catch {
    return undefined;
  }
}

const comesOn = async (irq: number) => (await generate(TIMES)).find((row) => row.irq === irq)!.counts;

describe.runIf(isRoot)('a quiet grant', () => {
  it('has interrupts come elsewhere while their device is at work, and no longer than it lasts', async ({
    skip,
  }) => {
    const irq = await generatorInterrupt();
    skip(irq === undefined, `no interrupt of ${GENERATOR} can be moved here`);
    const manager = await open();
    const free = await manager.acquire({ cpu: 1 });
    const cpu = free.cpus.first!;
    await free.release();
    const original = read(fileOf(irq!));
    onTestFinished(() => writeFileSync(fileOf(irq!), original));
    writeFileSync(fileOf(irq!), String(cpu));
    // A pending move takes one of them.
    await generate(1);
    expect((await comesOn(irq!)).get(cpu)).toBeGreaterThanOrEqual(TIMES);

    const grant = await manager.acquire({ cpu: 1, quiet: { interrupts: true } });
    expect(String(grant.cpus)).toBe(String(cpu));
    await generate(1);
    const during = await comesOn(irq!);
    expect([during.get(cpu) ?? 0, sum({ irq: irq!, name: '', counts: during })]).toEqual([
      0,
      expect.toSatisfy((count: number) => count >= TIMES),
    ]);

    await grant.release();
    expect(read(fileOf(irq!))).toBe(String(cpu));
    await generate(1);
    expect((await comesOn(irq!)).get(cpu)).toBeGreaterThanOrEqual(TIMES);
  });

  it('leaves all masks as they were once it has ended', async () => {
    const manager = await open();
    const before = masks();
    const grant = await manager.acquire({ cpu: 1, quiet: true });
    expect(masks()).not.toEqual(before);
    await grant.release();
    expect(masks()).toEqual(before);
  });

  it('names an interrupt that the kernel does not let go, with its error', async ({ skip }) => {
    const stuck = rows().find(({ irq }) => refuses(irq));
    skip(stuck === undefined, 'the kernel lets all interrupts go here');
    const { irq } = stuck!;
    const effective = CpuSet.parse(read(`/proc/irq/${irq}/effective_affinity_list`));
    skip(effective.equals(RESERVED), 'it comes on a CPU that is not granted');
    const grant = await (await open()).acquire({ cpu: 1, quiet: { interrupts: true } });
    const outcome = grant.quiet!.parts.interrupts!;
    expect(outcome.reached).toBe('partly');
    expect(outcome.reasons.join()).toMatch(new RegExp(`IRQ ${irq} .*(EPERM|EIO)`));
  });

  it('is refused where a part cannot be had that it requires, and leaves nothing', async ({ skip }) => {
    const manager = await open();
    const before = masks();
    const grant = await manager.acquire({ cpu: 1, quiet: true });
    const part = Object.entries(grant.quiet!.parts).find(([, { reached }]) => reached !== 'yes')?.[0];
    await grant.release();
    skip(part === undefined, 'all of it can be had here');
    const require = { quiet: [part as 'frequency'] };
    const error = await errorOf(() => manager.acquire({ cpu: 1, quiet: true, require }));
    expect(error).toMatchObject({ code: 'ERR_QUIET', details: { value: [part] } });
    expect(manager.grants()).toEqual([]);
    expect(masks()).toEqual(before);
  });

  it('keeps its interrupts away when it is resized, and while it is', async ({ skip }) => {
    skip(affinity().size < 3, 'there are only two CPUs');
    const manager = await open();
    const before = masks();
    const grant: Grant = await manager.acquire({ cpu: 1, quiet: { workqueues: true } });
    await grant.resize({ cpu: 2 });
    expect(grant.quiet!.parts.workqueues!.reached).toBe('yes');
    await grant.release();
    expect(masks()).toEqual(before);
  });
});

/** Whether the kernel refuses to have the mask of an interrupt set to what it is. */
function refuses(irq: number): boolean {
  try {
    writeFileSync(fileOf(irq), read(fileOf(irq)));
    return false;
  } catch (error) {
    return ['EPERM', 'EIO'].includes((error as NodeJS.ErrnoException).code ?? '');
  }
}
