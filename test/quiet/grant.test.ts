// needs: machine
// Quiet grants on this machine: interrupts of its devices under traffic, refusals of the kernel,
// and restored settings.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type InterruptRow, parseInterrupts } from '../../lib/doctor/hardware-facts.js';
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

const TIMES = 20;
const MOST_READS = 50 * TIMES;

/** Reads the random number generator until it is `enough`, at most this many times. */
async function generateUntil(enough: (reads: number) => boolean): Promise<void> {
  const device = await openFile(GENERATOR);
  try {
    for (let i = 0; i < MOST_READS && !enough(i); i++) await device.read(Buffer.alloc(64), 0, 64, null);
  } finally {
    await device.close();
  }
}

const rowOf = (irq: number) => rows().find((row) => row.irq === irq)!;

/** An interrupt that occurs when the generator is read, and that may be moved. */
async function generatorInterrupt(): Promise<number | undefined> {
  try {
    const before = new Map(rows().map((row) => [row.irq, sum(row)]));
    await generateUntil((reads) => reads === 2 * TIMES);
    const isRaised = (row: InterruptRow) => sum(row) - (before.get(row.irq) ?? 0) >= TIMES;
    return rows().find((row) => isRaised(row) && !refuses(row.irq))?.irq;
  } catch {
    return undefined;
  }
}

/** How often it occurs on a CPU while it occurs this many times. */
async function comesOn(cpu: number, irq: number, times = TIMES): Promise<number> {
  const before = rowOf(irq);
  await generateUntil(() => sum(rowOf(irq)) - sum(before) >= times);
  expect(sum(rowOf(irq)) - sum(before)).toBeGreaterThanOrEqual(times);
  return (rowOf(irq).counts.get(cpu) ?? 0) - (before.counts.get(cpu) ?? 0);
}

describe.runIf(isRoot)('a quiet grant', () => {
  it('moves interrupts elsewhere while their device is at work, but only as long as it lasts', async ({
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
    // A move may take effect with the next interrupt.
    await comesOn(cpu, irq!, 2);
    expect(await comesOn(cpu, irq!)).toBeGreaterThanOrEqual(TIMES);

    const grant = await manager.acquire({ cpu: 1, quiet: { interrupts: true } });
    expect(String(grant.cpus)).toBe(String(cpu));
    await comesOn(cpu, irq!, 2);
    expect(await comesOn(cpu, irq!)).toBe(0);

    await grant.release();
    expect(read(fileOf(irq!))).toBe(String(cpu));
    await comesOn(cpu, irq!, 2);
    expect(await comesOn(cpu, irq!)).toBeGreaterThanOrEqual(TIMES);
  });

  it('leaves all masks restored once it has ended', async () => {
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

  it('is refused if a required part is out of reach, and leaves nothing', async ({ skip }) => {
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

  it('keeps its interrupts away during and after a resize', async ({ skip }) => {
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

/** True if the kernel refuses to set the mask of an interrupt to its current value. */
function refuses(irq: number): boolean {
  try {
    writeFileSync(fileOf(irq), read(fileOf(irq)));
    return false;
  } catch (error) {
    return ['EPERM', 'EIO'].includes((error as NodeJS.ErrnoException).code ?? '');
  }
}
