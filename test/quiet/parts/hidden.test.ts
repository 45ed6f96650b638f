// needs: nothing
// Records of settings that a process cannot see stay for one that can.
import { expect, it } from 'vitest';
import type { QuietSetting } from '../../../lib/account/assignments.js';
import { PARTS } from '../../../lib/quiet/parts/parts.js';
import { kernelTree } from '../../support/kernel-tree.js';

const FILES = {
  '/proc/irq/default_smp_affinity': 'f',
  '/sys/devices/virtual/workqueue/cpumask': 'f',
  '/sys/devices/system/cpu/possible': '0-3',
  '/sys/class/net/lo/ifindex': '1',
  '/proc/self/ns/net': 'net:[1]',
  '/sys/fs/resctrl/info/L3/cbm_mask': 'f',
};

it.each(PARTS.map((part) => [part.name, part] as const))(
  'records of %s are hidden with its files',
  (name, part) => {
    const record: QuietSetting = {
      ...{ part: name, path: '/setting', identity: '4026531840', original: '0', written: ['1'] },
      ...{ refusal: null, isLeftover: false },
    };
    const seen = { ...record, identity: name === 'packets' ? 'net:[1]' : null };
    expect(part.hidden(kernelTree(FILES), [seen])).toEqual([]);
    expect(part.hidden(kernelTree({}), [record])).toEqual([record]);
  },
);
