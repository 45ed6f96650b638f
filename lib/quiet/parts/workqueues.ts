// Workqueues: kernel work that belongs to no CPU, as core-api/workqueue of the kernel has it.
import type { CpuSet } from '../../machine/cpu-set.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import { HEX, MaskSetting } from '../kernel/mask-setting.js';
import type { Part, PartDemand } from '../kernel/setting.js';

const FOLDER = '/sys/devices/virtual/workqueue';
const MASK = 'cpumask';

/**
 * Of all unbound work. Since 6.8 the kernel takes the CPUs of isolated partitions out of the mask, by
 * itself and as these come and go: what was asked for is in a file of its own then. A write puts those
 * CPUs back, so that what is written must be without them.
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
    return super.target(base, this.#withIsolated(demand));
  }

  suffices(_value: string, demand: PartDemand): boolean {
    const effective = this.cpusOf(super.read() ?? '');
    return demand.cpus.size > 0 && !effective.intersects(this.#withIsolated(demand).cpus);
  }

  override disturbs(value: string, demand: PartDemand): CpuSet {
    return super.disturbs(super.read() ?? value, demand);
  }

  #withIsolated(demand: PartDemand): PartDemand {
    return { ...demand, cpus: demand.cpus.union(this.#isolated) };
  }
}

export const workqueues: Part = {
  name: 'workqueues',

  settings(files) {
    // Work of one queue, such as writeback, is done on those CPUs of its mask that are in the mask
    // of all, or on all of that where there are none: its own mask goes first.
    const queues = files.list(FOLDER).flatMap((name) => {
      const path = `${FOLDER}/${name}/${MASK}`;
      return files.exists(path) ? [new MaskSetting(files, path, `workqueue ${name}`, HEX)] : [];
    });
    return files.exists(`${FOLDER}/${MASK}`) ? [...queues, new UnboundMask(files)] : queues;
  },

  hidden: (files, recorded) => (files.exists(`${FOLDER}/${MASK}`) ? [] : recorded),

  obstacles(files) {
    if (files.exists(`${FOLDER}/${MASK}`)) return [];
    return [
      `${FOLDER} cannot be seen from here: in a container, mount the machine's /sys; where the kernel has no such folder, boot with \`isolcpus=\``,
    ];
  },
};
