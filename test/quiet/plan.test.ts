// Plans for a setting that does not show at once what was written, like irqbalance.
import { beforeAll, expect, it } from 'vitest';
import type { QuietSetting } from '../../lib/account/quiet/quiet-record.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import type { Setting } from '../../lib/quiet/kernel/setting.js';
import { planQuiet } from '../../lib/quiet/plan.js';
import { demandOf } from '../support/quiet.js';

let topology: Topology;
beforeAll(async () => {
  topology = await discover({ synthetic: 'core:4 pu:1' });
});

const setting = {
  ...{ path: '/socket', identity: '7 1', title: 'irqbalance' },
  target: (base: string, { cpus }: { cpus: CpuSet }) => String(CpuSet.parse(base).union(cpus)),
} as unknown as Setting;
const record: QuietSetting = {
  ...{ part: 'interrupts', path: setting.path, identity: setting.identity, original: '0' },
  ...{ written: ['0,2'], refusal: null, isLeftover: false },
};

/** No grant needs it any more. */
function planOf(value: string, isDelayed: boolean, recorded = record) {
  const { path, identity } = setting;
  const found = {
    part: 'interrupts' as const,
    setting: { ...setting, path, identity, isDelayed },
    demand: demandOf(topology),
    identity,
    value,
  };
  const plan = planQuiet({ found: [found], unread: [], hidden: [] }, [recorded], { isWritable: () => true });
  return plan.restorations.map(({ target }) => target);
}

it('is restored though it still shows the earlier value, since ours may follow', () => {
  expect(planOf('0', true)).toEqual(['0']);
  expect(planOf('0', false)).toEqual([]);
});

it('is left alone if another program has written it since', () => {
  expect(planOf('0-1', true)).toEqual([]);
});

it('is left alone if it has refused the write', () => {
  expect(planOf('0', true, { ...record, refusal: 'E2BIG' })).toEqual([]);
});
