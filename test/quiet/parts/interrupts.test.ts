// needs: nothing
import { beforeAll, describe, expect, it } from 'vitest';
import { discover, type Topology } from '../../../lib/entries/topology.js';
import type { KernelFiles } from '../../../lib/quiet/kernel/kernel-files.js';
import { interruptsPart } from '../../../lib/quiet/parts/interrupts.js';
import { errorOf } from '../../support/error-of.js';
import { kernelTree } from '../../support/kernel-tree.js';
import { demandOf, quiet, restore, write } from '../../support/quiet.js';

interface Irq {
  readonly chip?: string;
  readonly pin?: number;
  readonly handler?: string;
  readonly cpus?: string;
  readonly effective?: string;
}

function irqs(all: Record<number, Irq>): Record<string, string> {
  const files = Object.entries(all).flatMap(([irq, { chip, pin, handler, cpus, effective }]) => [
    [`/proc/irq/${irq}/smp_affinity_list`, cpus ?? '0-3'],
    [`/proc/irq/${irq}/effective_affinity_list`, effective ?? ''],
    [`/sys/kernel/irq/${irq}/chip_name`, chip ?? 'PCI-MSIX-0000:00:01.0'],
    [`/sys/kernel/irq/${irq}/hwirq`, String(pin ?? 0)],
    [`/sys/kernel/irq/${irq}/actions`, handler ?? 'eth0'],
  ]);
  return { '/proc/irq/default_smp_affinity': 'f', ...Object.fromEntries(files) };
}

const part = interruptsPart({ ask: () => Promise.reject(new Error('no socket')), running: () => [] });

let machine: Topology;
beforeAll(async () => {
  machine = await discover({ synthetic: 'numa:1 core:4 pu:1' });
});

const demand = (cpus = '2') => demandOf(machine, quiet(cpus));
const settingsOf = (files: KernelFiles) => [...part.settings(files, demand(), [])];
const only = (irq: Irq) => settingsOf(kernelTree(irqs({ 24: irq })))[1]!;

describe('the interrupts of devices', () => {
  it('are those of /proc/irq in the order of their numbers, after the default for new ones', () => {
    const settings = settingsOf(kernelTree(irqs({ 100: {}, 24: {}, 9: {} })));
    expect(settings.map(({ path }) => path)).toEqual([
      '/proc/irq/default_smp_affinity',
      '/proc/irq/9/smp_affinity_list',
      '/proc/irq/24/smp_affinity_list',
      '/proc/irq/100/smp_affinity_list',
    ]);
  });

  it('leave quiet CPUs, and come back', async () => {
    const files = kernelTree(irqs({ 24: { cpus: '0-3' }, 25: { cpus: '0' }, 26: { cpus: '2' } }));
    const before = new Map(files.texts);
    const changes = await write(settingsOf(files), demand());
    expect(files.texts.get('/proc/irq/default_smp_affinity')).toBe('b');
    expect(files.texts.get('/proc/irq/24/smp_affinity_list')).toBe('0-1,3');
    expect(files.texts.get('/proc/irq/25/smp_affinity_list')).toBe('0');
    expect(files.texts.get('/proc/irq/26/smp_affinity_list')).toBe('0-1,3');
    await restore(changes);
    expect(files.texts).toEqual(before);
  });

  it('have the names of their handlers', () => {
    expect(only({ handler: 'virtio0-input.0' }).title).toBe('IRQ 24 (virtio0-input.0)');
  });

  it('have only a number without a handler', () => {
    expect(only({ handler: '' }).title).toBe('IRQ 24');
  });

  it('are distinguished from later ones with their numbers by chip and pin', () => {
    const { identity } = only({ pin: 1 });
    expect(only({ pin: 1 }).identity).toBe(identity);
    expect(only({ pin: 2 }).identity).not.toBe(identity);
    expect(only({ pin: 1, chip: 'IO-APIC' }).identity).not.toBe(identity);
  });

  it('stay the same while the device is closed and has no handler', () => {
    expect(only({ handler: '' }).identity).toBe(only({ handler: 'eth0-rx' }).identity);
  });

  it('have no identity if the kernel does not describe them', () => {
    const files = kernelTree({ '/proc/irq/24/smp_affinity_list': '0-3' });
    expect(settingsOf(files)[0]).toMatchObject({ identity: null, title: 'IRQ 24' });
    files.texts.set('/sys/kernel/irq/24/chip_name', 'IO-APIC');
    expect(settingsOf(files)[0]!.identity).toBeNull();
  });

  it('do not count those that belong to one CPU by design', () => {
    const files = kernelTree(
      irqs({
        1: { chip: 'GICv3', pin: 27, handler: 'arch_timer' },
        2: { chip: 'GICv3', pin: 32, handler: 'eth0' },
        3: { chip: 'RISC-V INTC', pin: 5, handler: 'riscv-timer' },
      }),
    );
    expect(settingsOf(files).map(({ title }) => title)).toEqual([
      'the default affinity of new IRQs',
      'IRQ 2 (eth0)',
    ]);
  });

  it('end with the error of the kernel if it manages one itself', async () => {
    const files = kernelTree(irqs({ 24: {} }), { '24/smp_affinity_list': () => ({ refusal: 'EPERM' }) });
    const error = await errorOf(() => settingsOf(files)[1]!.write('0'));
    expect(error).toMatchObject({ code: 'EPERM' });
  });
});

describe('an interrupt disturbs', () => {
  it('the CPU of its mask that it is delivered to', () => {
    expect(String(only({ effective: '2' }).disturbs('0-3', demand()))).toBe('2');
    expect(String(only({ effective: '0' }).disturbs('0-3', demand()))).toBe('');
  });

  it('no CPU outside of its mask, where it occurs only once more', () => {
    expect(String(only({ effective: '2' }).disturbs('0-1,3', demand()))).toBe('');
  });

  it('no CPU outside of its mask, without further reads', () => {
    const unreadable = { '/proc/irq/24/effective_affinity_list': 'EIO', '/sys/kernel/irq/24/actions': 'EIO' };
    const settings = settingsOf(kernelTree(irqs({ 24: {} }), {}, unreadable));
    expect(String(settings[1]!.disturbs('0-1,3', demand()))).toBe('');
  });

  it('all CPUs of its mask if the kernel hides which one gets it', () => {
    expect(String(only({ effective: '' }).disturbs('1-3', demand('2-3')))).toBe('2-3');
  });

  it('no CPU without a handler', () => {
    expect(String(only({ handler: '', effective: '2' }).disturbs('2', demand()))).toBe('');
  });
});

describe('an obstacle to quiet interrupts', () => {
  it('does not exist if they are visible', () => {
    expect(part.obstacles(kernelTree(irqs({})), demand())).toEqual([]);
  });

  it('is a container that does not see them', () => {
    expect(part.obstacles(kernelTree({}), demand())).toEqual([
      expect.stringMatching(/\/proc\/irq cannot be seen/),
    ]);
  });

  it('is an irqbalance without a socket', () => {
    const rival = interruptsPart({
      ask: () => Promise.reject(new Error('no socket')),
      running: () => [{ pid: 812, name: 'irqbalance' }],
    });
    const [obstacle, ...more] = rival.obstacles(kernelTree(irqs({})), demand('2-3'));
    expect(obstacle).toMatch(/irqbalance \(process 812\) .* IRQBALANCE_BANNED_CPULIST=2-3/);
    expect(more).toEqual([]);
  });
});
