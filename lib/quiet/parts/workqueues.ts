// Workqueues: kernel work that belongs to no CPU, as the kernel's core-api/workqueue describes it.
import type { CpuSet } from '../../machine/cpu-set.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import { HEX, MaskSetting } from '../kernel/mask-setting.js';
import type { Part, PartDemand } from '../kernel/setting.js';

const FOLDER = '/sys/devices/virtual/workqueue';
const MASK = 'cpumask';

/**
 * The mask of all unbound work. Since 6.8 the kernel removes the CPUs of isolated partitions from
 * the mask as partitions come and go; the requested mask then has its own file. A write puts those
 * CPUs back, so the written mask must leave them out.
 */
class UnboundMask extends MaskSetting {
  readonly #isolated: CpuSet;

  constructor(files: KernelFiles) {
    super(files, `${FOLDER}/${MASK}`, 'unbound workqueues', HEX);
    this.#isolated = this.cpusOf(this.readFrom(`${FOLDER}/${MASK}_isolated`) ?? '');
  }

  override read(): string | undefined {
    return this.readFrom(`${FOLDER}/${MASK}_requested`) ?? super.read();
  }

  override target(base: string, demand: PartDemand): string {
    return super.target(base, this.#withKernelIsolated(demand));
  }

  // A value that is wider only by CPUs that the kernel removes will do.
  suffices(value: string, target: string, demand: PartDemand): boolean {
    const effective = this.cpusOf(super.read() ?? '');
    const isWider = this.cpusOf(target).isSubsetOf(this.cpusOf(value));
    return isWider && !effective.intersects(this.#withKernelIsolated(demand).cpus);
  }

  override disturbs(value: string, demand: PartDemand): CpuSet {
    return super.disturbs(super.read() ?? value, demand);
  }

  #withKernelIsolated(demand: PartDemand): PartDemand {
    return { ...demand, cpus: demand.cpus.union(this.#isolated) };
  }
}

export const workqueues: Part = {
  name: 'workqueues',

  settings(files) {
    // The work of one queue, such as writeback, runs on the CPUs of its mask that are also in the
    // mask of all, or on all of the latter if there are none. So the queue's own mask comes first.
    const queues = files.list(FOLDER).flatMap((name) => {
      const path = `${FOLDER}/${name}/${MASK}`;
      return files.exists(path) ? [new MaskSetting(files, path, `workqueue ${name}`, HEX)] : [];
    });
    return files.exists(`${FOLDER}/${MASK}`) ? [...queues, new UnboundMask(files)] : queues;
  },

  hidden: (files, records) => (files.exists(`${FOLDER}/${MASK}`) ? [] : records),

  obstacles(files) {
    if (files.exists(`${FOLDER}/${MASK}`)) return [];
    return [
      `${FOLDER} cannot be seen from here: in a container, mount the machine's /sys; if the kernel has no such folder, boot with \`isolcpus=\``,
    ];
  },
};
