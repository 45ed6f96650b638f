// needs: machine
// Settings of this machine: each is written, read back and restored.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { discover, type Topology } from '../../../lib/entries/topology.js';
import { CpuSet } from '../../../lib/machine/cpu-set.js';
import { cpuMask } from '../../../lib/quiet/kernel/cpu-mask.js';
import { kernelFiles } from '../../../lib/quiet/kernel/kernel-files.js';
import type { Part, PartDemand, Setting } from '../../../lib/quiet/kernel/setting.js';
import { idle } from '../../../lib/quiet/parts/idle.js';
import { interruptsPart } from '../../../lib/quiet/parts/interrupts.js';
import { packets } from '../../../lib/quiet/parts/packets.js';
import { PARTS } from '../../../lib/quiet/parts/parts.js';
import { workqueues } from '../../../lib/quiet/parts/workqueues.js';
import { demandOf, quiet } from '../../support/quiet.js';

const files = kernelFiles();
const interrupts = interruptsPart({ ask: () => Promise.reject(new Error('not asked')), running: () => [] });

let demand: PartDemand;
let quietCpus: CpuSet;
let machine: Topology;
beforeAll(async () => {
  machine = await discover();
  quietCpus = CpuSet.of(machine.cpus.toArray().at(-1)!);
  demand = demandOf(machine, quiet(quietCpus, { idle: { maxLatency: 0 } }));
});

const isRoot = process.geteuid?.() === 0;

/** Restores the current content of files of settings when the test ends. */
function restoreLater(settings: readonly Setting[]): void {
  const texts = settings.flatMap(({ path }) =>
    existsSync(path) ? [[path, readFileSync(path, 'utf8')] as const] : [],
  );
  onTestFinished(() => {
    for (const [path, text] of texts) if (readFileSync(path, 'utf8') !== text) writeFileSync(path, text);
  });
}

const settingsOf = (part: Part, end: string) =>
  [...part.settings(files, demand, [])].filter(({ path }) => path.endsWith(end));

/** The kernel's value after the target of a setting, and true if the original is back. */
function writtenAndRestored(setting: Setting) {
  restoreLater([setting]);
  const original = setting.read() as string;
  const target = setting.target(original, demand);
  setting.write(target);
  const [written, disturbed] = [setting.read(), String(setting.disturbs(setting.read() as string, demand))];
  setting.write(original);
  return {
    isChanged: target !== original,
    isWritten: written === target,
    disturbed,
    isBack: setting.read() === original,
  };
}

/**
 * True if the affinity may be written. The kernel keeps managed interrupts to itself: it shows their
 * CPUs, and refuses even the affinity that they have.
 */
function mayBeMoved({ path }: Setting): boolean {
  try {
    writeFileSync(path, readFileSync(path, 'utf8'));
    return true;
  } catch {
    return false;
  }
}

const DONE = { isChanged: true, isWritten: true, disturbed: '', isBack: true };

describe.runIf(isRoot)('on this machine', () => {
  it('an interrupt of a device leaves a quiet CPU and comes back', ({ skip }) => {
    const all = settingsOf(interrupts, '/smp_affinity_list');
    const movable = all.find(
      (setting) => CpuSet.parse(setting.read() as string).equals(machine.cpus) && mayBeMoved(setting),
    );
    skip(movable === undefined, 'no interrupt may go to all CPUs here');
    expect(writtenAndRestored(movable!)).toEqual(DONE);
  });

  it('new interrupts follow a default without quiet CPUs', ({ skip }) => {
    const [setting] = settingsOf(interrupts, '/default_smp_affinity');
    skip(setting === undefined, 'the kernel does not show it here');
    expect(writtenAndRestored(setting!)).toEqual(DONE);
  });

  it('every interrupt has an identity', ({ skip }) => {
    skip(!existsSync('/sys/kernel/irq'), 'the kernel does not describe them here');
    for (const { identity } of settingsOf(interrupts, '/smp_affinity_list'))
      expect(identity).toMatch(/\S \d+$/);
  });

  it('unbound kernel work leaves a quiet CPU and comes back, each queue and all', ({ skip }) => {
    const settings = settingsOf(workqueues, '/cpumask');
    skip(settings.length === 0, 'the kernel does not show it here');
    expect(settings.length).toBeGreaterThan(1);
    for (const setting of settings) expect(writtenAndRestored(setting)).toEqual(DONE);
  });

  it('a CPU sleeps in no state that takes time to wake up, and then again as before', ({ skip }) => {
    const [setting] = settingsOf(idle, '/pm_qos_resume_latency_us');
    skip(setting === undefined, 'the kernel has no limits here');
    expect(writtenAndRestored(setting!)).toEqual(DONE);
  });

  it('the kernel has the words for no limit (0) and for none at all (n/a) that are written', ({ skip }) => {
    const [setting] = settingsOf(idle, '/pm_qos_resume_latency_us');
    skip(setting === undefined, 'the kernel has no limits here');
    restoreLater([setting!]);
    for (const value of ['n/a', '10', '2147483646', '0']) {
      setting!.write(value);
      expect(setting!.read()).toBe(value);
    }
  });

  it('packets of a device are steered to other CPUs, and then again as before', () => {
    const setting = settingsOf(packets, '/net/lo/queues/rx-0/rps_cpus')[0]!;
    restoreLater([setting]);
    const first = demandOf(machine, quiet(CpuSet.of(machine.cpus.first!)));
    const base = cpuMask(first.cpus);
    setting.write(base);
    expect(setting.read()).toBe(base);
    setting.write(setting.target(base, first));
    expect(setting.read()).toBe(cpuMask(machine.cpus.difference(first.cpus)));
  });

  it('an unreadable queue is missing', () => {
    for (const setting of settingsOf(packets, '/xps_cpus'))
      expect(setting.read()).toSatisfy((text) => text === undefined || /^[0-9a-f,]+$/.test(text as string));
  });

  it.each(PARTS)('no setting of $name changes without a demand', async (part) => {
    for (const setting of part.settings(files, demand, [])) {
      expect(setting.title).not.toBe('');
      const value = await setting.read();
      if (value !== undefined) expect(setting.target(value, demandOf(machine))).toBe(value);
    }
  });
});
