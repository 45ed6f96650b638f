// Workqueues: kernel work that belongs to no CPU, as core-api/workqueue of the kernel has it.
import type { KernelFiles } from '../kernel/kernel-files.js';
import { HEX, MaskSetting } from '../kernel/mask-setting.js';
import type { Part } from '../kernel/setting.js';

const FOLDER = '/sys/devices/virtual/workqueue';
const MASK = 'cpumask';

/** Of all unbound work. */
class UnboundMask extends MaskSetting {
  constructor(files: KernelFiles) {
    super(files, `${FOLDER}/${MASK}`, 'unbound workqueues', HEX);
  }

  // The kernel takes the CPUs of isolated partitions out of the mask by itself. What was asked for
  // is in a file of its own since 6.8.
  override read(): string | undefined {
    return this.readFrom(`${FOLDER}/${MASK}_requested`) ?? super.read();
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
