// needs: nothing
// Interrupts that appear while grants are quiet, and isolated partitions beside them: on a kernel
// in memory, with the real quieter.
import { beforeAll, describe, expect, it } from 'vitest';
import { type Assignments, emptyAssignments } from '../../../lib/account/assignments.js';
import { addPod, removePods } from '../../../lib/account/pod-changes.js';
import { DEFAULT_SETTINGS } from '../../../lib/decision/machine-settings.js';
import { discover, type Topology } from '../../../lib/entries/topology.js';
import { CpuSet } from '../../../lib/index.js';
import type { Part } from '../../../lib/quiet/kernel/setting.js';
import { MachineQuieter } from '../../../lib/quiet/machine-quieter.js';
import { interruptsPart } from '../../../lib/quiet/parts/interrupts.js';
import { workqueues } from '../../../lib/quiet/parts/workqueues.js';
import { type KernelTree, kernelTree } from '../../support/kernel-tree.js';
import { podOf } from '../../support/quiet-world.js';

const ASKED = {
  ...{ interrupts: true, workqueues: true, packets: false, idle: null },
  ...{ frequency: false, cache: null },
};
const interrupts = interruptsPart({ ask: () => Promise.reject(new Error('no one')), running: () => [] });
const DEFAULT = '/proc/irq/default_smp_affinity';
const QUEUES = '/sys/devices/virtual/workqueue/cpumask';
const affinityOf = (irq: number) => `/proc/irq/${irq}/smp_affinity_list`;

let machine: Topology;
beforeAll(async () => {
  machine = await discover({ synthetic: 'numa:1 core:4 pu:1' });
});

/** Processes that acquire and release quiet grants one after the other. */
class Run {
  readonly files: KernelTree;
  readonly #quieter: MachineQuieter;
  #state: Assignments = emptyAssignments(DEFAULT_SETTINGS);

  constructor(files: KernelTree, part: Part) {
    this.files = files;
    this.#quieter = new MachineQuieter(
      () => machine,
      [part],
      files,
      () => [],
    );
  }

  acquire(uid: string, cpus: string): Promise<void> {
    return this.#carryOn(addPod(this.#state, podOf(uid, uid, CpuSet.parse(cpus), ASKED), {}));
  }

  /** `committed`: called once the grant is off the record. */
  release(uid: string, committed?: () => void): Promise<void> {
    return this.#carryOn(removePods(this.#state, new Set([uid])), committed);
  }

  async drifts(): Promise<readonly string[]> {
    return (await this.#quieter.compare(this.#state)).drifts.map(({ what }) => what);
  }

  /** With other settings. */
  commit(): Promise<void> {
    return this.#carryOn({ ...this.#state });
  }

  get isOnRecord(): boolean {
    return this.#state.quiet !== null;
  }

  async #carryOn(next: Assignments, committed = () => {}): Promise<void> {
    const record = async (state: Assignments) => {
      this.#state = state;
    };
    const step = await this.#quieter.follow(this.#state, next, record);
    this.#state = step!.next;
    committed();
    this.#state = await step!.write(this.#state);
  }
}

function irq(files: Map<string, string>, number: number, cpus: string): void {
  files.set(affinityOf(number), cpus);
  files.set(`/sys/kernel/irq/${number}/chip_name`, 'PCI-MSIX');
  files.set(`/sys/kernel/irq/${number}/hwirq`, String(number));
  files.set(`/sys/kernel/irq/${number}/actions`, 'eth0');
}

function interruptRun(all: Record<number, string>): Run {
  const run = new Run(kernelTree({ [DEFAULT]: 'f' }), interrupts);
  for (const [number, cpus] of Object.entries(all)) irq(run.files.texts, Number(number), cpus);
  return run;
}

describe('an interrupt that appears while a grant is quiet', () => {
  it('ends with the mask that it would have started with', async () => {
    const run = interruptRun({ 24: '0-3' });
    await run.acquire('a', '3');
    irq(run.files.texts, 25, '0-2');
    expect(await run.drifts()).toEqual([]);
    await run.release('a');
    expect([24, 25].map((number) => run.files.texts.get(affinityOf(number)))).toEqual(['0-3', '0-3']);
    expect(run.isOnRecord).toBe(false);
  });

  it('stays off the CPUs of further grants, and ends with the mask that it would have started with', async () => {
    const run = interruptRun({});
    await run.acquire('a', '3');
    irq(run.files.texts, 25, '0-2');
    await run.acquire('b', '2');
    expect(run.files.texts.get(affinityOf(25))).toBe('0-1');
    await run.release('a');
    expect(run.files.texts.get(affinityOf(25))).toBe('0-1,3');
    await run.release('b');
    expect(run.files.texts.get(affinityOf(25))).toBe('0-3');
  });

  it('is distinguished from an earlier one with the same mask by chance', async () => {
    const run = interruptRun({ 24: '0-2', 26: '0-1' });
    await run.acquire('a', '3');
    await run.acquire('b', '2');
    await run.release('a');
    await run.release('b');
    expect([24, 26].map((number) => run.files.texts.get(affinityOf(number)))).toEqual(['0-2', '0-1']);
    expect(run.isOnRecord).toBe(false);
  });
});

describe('an interrupt that has the mask of new ones by chance', () => {
  it('does not count as new once a grant has ended that it was moved for', async () => {
    const run = interruptRun({ 24: '0-1' });
    await run.acquire('a', '3');
    await run.acquire('b', '2');
    await run.acquire('c', '1');
    expect(run.files.texts.get(affinityOf(24))).toBe('0');
    await run.release('c');
    expect(run.files.texts.get(affinityOf(24))).toBe('0-1');
    await run.release('b');
    await run.release('a');
    expect(run.files.texts.get(affinityOf(24))).toBe('0-1');
    expect(run.isOnRecord).toBe(false);
  });
});

/**
 * Like a kernel since 6.8: a write is in force unchanged, a partition takes its CPUs out of the
 * rest.
 */
function queueRun(): { run: Run; isolate: (mask: string) => void; effective: () => string } {
  const files = kernelTree(
    { [QUEUES]: 'f', [`${QUEUES}_requested`]: 'f', [`${QUEUES}_isolated`]: '0' },
    {
      'workqueue/cpumask': (text, texts) => {
        texts.set(`${QUEUES}_requested`, text);
        return { text };
      },
    },
  );
  const mask = (path: string) => Number.parseInt(files.texts.get(path)!, 16);
  const isolate = (isolated: string) => {
    files.texts.set(`${QUEUES}_isolated`, isolated);
    const left = mask(`${QUEUES}_requested`) & ~Number.parseInt(isolated, 16);
    files.texts.set(QUEUES, left.toString(16));
  };
  return { run: new Run(files, workqueues), isolate, effective: () => files.texts.get(QUEUES)! };
}

describe('unbound kernel work beside an isolated partition', () => {
  it('stays off the partition while a quiet grant comes and goes, and comes back after it', async () => {
    const { run, isolate, effective } = queueRun();
    isolate('c');
    await run.acquire('a', '1');
    expect(effective()).toBe('1');
    await run.release('a');
    expect(effective()).toBe('3');
    isolate('0');
    expect(await run.drifts()).toHaveLength(1);
    await run.commit();
    expect(effective()).toBe('f');
    expect(run.isOnRecord).toBe(false);
  });

  it('is restored once a grant has ended that was both', async () => {
    const { run, isolate, effective } = queueRun();
    isolate('8');
    await run.acquire('a', '3');
    expect(effective()).toBe('7');
    await run.release('a', () => isolate('0'));
    expect(effective()).toBe('f');
    expect(run.isOnRecord).toBe(false);
  });

  it('is no drift if a partition comes or goes and quiet CPUs stay quiet', async () => {
    const { run, isolate, effective } = queueRun();
    await run.acquire('a', '3');
    isolate('4');
    expect(await run.drifts()).toEqual([]);
    expect(effective()).toBe('3');
    isolate('0');
    expect(await run.drifts()).toEqual([]);
    await run.release('a');
    expect(effective()).toBe('f');
  });

  it('comes back to the CPUs of an ended grant while another lasts', async () => {
    const { run, effective } = queueRun();
    await run.acquire('a', '3');
    await run.acquire('b', '2');
    await run.release('a');
    expect(effective()).toBe('b');
  });
});
