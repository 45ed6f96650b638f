// Packets: the CPUs that serve network queues, as the kernel's networking/scaling describes them.
import { hasCode, unless } from '../../base/errors.js';
import type { KernelFiles } from '../kernel/kernel-files.js';
import { HEX, MaskSetting } from '../kernel/mask-setting.js';
import { NETWORK_DEVICES, networkQueues } from '../kernel/network-queues.js';
import type { Part } from '../kernel/setting.js';

const SETTINGS = '/proc/sys/net/core';
const DEFAULT_MASK = `${SETTINGS}/rps_default_mask`;
const NAMESPACE = '/proc/self/ns/net';

// An empty mask (0) means that the queue's packets are not steered (RPS), or that no CPU prefers
// the queue (XPS). An empty mask stays empty. A mask with only quiet CPUs becomes housekeeping
// CPUs: 0 would hand the packets to whichever CPU takes the interrupt, possibly a quiet one.
class QueueMask extends MaskSetting {
  // Each network namespace has its own devices, possibly with the same names.
  override get identity(): string | null {
    return namespaceOf(this.files);
  }

  // A device with one queue also has the file xps_cpus, but reading it fails.
  override read(): string | undefined {
    return unless(hasCode('EINVAL', 'EOPNOTSUPP'), () => super.read());
  }
}

const namespaceOf = (files: KernelFiles): string | null => files.link(NAMESPACE) ?? null;

const isOn = (count: string | undefined) => Number(count ?? 0) > 0;

export const packets: Part = {
  name: 'packets',

  settings(files) {
    const masks = (direction: 'rx' | 'tx', file: string) =>
      networkQueues(files, direction)
        .filter(({ path }) => files.exists(`${path}/${file}`))
        .map(
          ({ path, device, name }) =>
            new QueueMask(files, `${path}/${file}`, `${file} of ${device} ${name}`, HEX),
        );
    // New devices follow the default, so it comes first.
    const first = files.exists(DEFAULT_MASK)
      ? [new QueueMask(files, DEFAULT_MASK, 'RPS of new devices', HEX)]
      : [];
    return [...first, ...masks('rx', 'rps_cpus'), ...masks('tx', 'xps_cpus')];
  },

  hidden(files, records) {
    const namespace = namespaceOf(files);
    return files.exists(NETWORK_DEVICES) ? records.filter(({ identity }) => identity !== namespace) : records;
  },

  obstacles(files) {
    if (files.list(NETWORK_DEVICES).length === 0)
      return [`${NETWORK_DEVICES} shows no device: in a container, mount /sys of its network namespace`];
    // RFS needs entries for the sockets.
    if (!isOn(files.read(`${SETTINGS}/rps_sock_flow_entries`))) return [];
    const steered = networkQueues(files, 'rx').filter(({ path }) => isOn(files.read(`${path}/rps_flow_cnt`)));
    if (steered.length === 0) return [];
    const devices = [...new Set(steered.map(({ device }) => device))].join(', ');
    return [
      `RFS is on (${devices}): packets of a socket go to the CPU that last read it, whatever the masks are; \`sysctl -w net.core.rps_sock_flow_entries=0\` turns it off`,
    ];
  },
};
