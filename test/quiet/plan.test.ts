// needs: nothing
// Plans for a setting that does not show at once what was written, like irqbalance.
import { beforeAll, expect, it } from 'vitest';
import type { QuietSetting } from '../../lib/account/assignments.js';
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

/** The plan where no grant needs it any more. */
function planOf(value: string, isDelayed: boolean, recorded = record) {
  const { path, identity } = setting;
  const found = {
    part: 'interrupts' as const,
    setting: { ...setting, path, identity, isDelayed },
    demand: demandOf(topology),
    identity,
    value,
  };
  return planQuiet({ found: [found], unread: [], hidden: [] }, [recorded], { isWritable: () => true });
}

const restored = (...args: Parameters<typeof planOf>) =>
  planOf(...args).restorations.map(({ target }) => target);

it('is restored though it still shows the earlier value, since ours may follow', () => {
  expect(restored('0', true)).toEqual(['0']);
  expect(restored('0', false)).toEqual([]);
});

it('is left alone if another program has written it since', () => {
  expect(restored('0-1', true)).toEqual([]);
});

it('is forgotten if another program has restored it, which is not foreign', () => {
  expect(planOf('0', false)).toEqual({ restorations: [], changes: [], foreign: [], settings: [] });
});

it('is left alone if it has refused the write', () => {
  expect(restored('0', true, { ...record, refusal: 'E2BIG' })).toEqual([]);
});

it('that a setting would start with keeps its record while the values of new settings change', () => {
  const whole = { part: 'interrupts' as const, refusal: null, isLeftover: false };
  const source: QuietSetting = { ...whole, path: '/d', identity: null, original: '0', written: ['1'] };
  const bystander: QuietSetting = { ...whole, path: '/n', identity: '8', original: '2', written: [] };
  const demand = demandOf(topology);
  const of = (path: string, more: object) => ({ ...setting, path, identity: null, ...more }) as Setting;
  const inherits = { path: '/d', convert: (value: string) => value };
  const found = [
    {
      part: 'interrupts' as const,
      setting: of('/d', { target: () => '1' }),
      demand,
      identity: null,
      value: '1',
    },
    {
      ...{ part: 'interrupts' as const, demand, identity: '8', value: '2' },
      setting: of('/n', { target: (base: string) => base, inherits }),
    },
  ];
  const plan = planQuiet({ found, unread: [], hidden: [] }, [source, bystander], { isWritable: () => true });
  expect(plan).toEqual({ restorations: [], changes: [], foreign: [], settings: [source, bystander] });
});

it('is foreign if another program has written it over one of ours', () => {
  expect(planOf('0-1', false).foreign).toMatchObject([{ value: '0-1' }]);
  expect(planOf('0-1', false, { ...record, written: [] }).foreign).toEqual([]);
});

it('is left alone if it is not on record', () => {
  const another = { ...record, path: '/another' };
  expect(planOf('0', true, another)).toEqual({ restorations: [], changes: [], foreign: [], settings: [] });
});

it('that has its target forgets the values that it came by, and refusals', () => {
  const demand = demandOf(topology);
  const found = {
    part: 'interrupts' as const,
    setting: { ...setting, path: '/irq', target: () => '0-1' } as Setting,
    ...{ demand, identity: null, value: '0-1' },
  };
  const settled: QuietSetting = {
    ...{ part: 'interrupts', path: '/irq', identity: null, original: '0-3', written: ['0-1'] },
    ...{ refusal: null, isLeftover: false },
  };
  const planWith = (before: QuietSetting) =>
    planQuiet({ found: [found], unread: [], hidden: [] }, [before], { isWritable: () => true });
  expect(planWith({ ...settled, written: ['0-1', '0-2'] })).toMatchObject({
    changes: [],
    settings: [settled],
  });
  expect(planWith({ ...settled, refusal: 'EPERM' }).settings).toEqual([settled]);
  expect(planWith(settled).settings[0]).toBe(settled);
});

it('stays on record while it cannot be read, and ends once it is not there', () => {
  const recorded = ['/1', '/2'].map((path) => ({ ...record, path }));
  const unreadOf = (path: string | null) => ({
    ...{ part: 'interrupts' as const, reason: 'EBUSY' },
    setting: path === null ? null : ({ ...setting, path } as Setting),
  });
  const kept = (path: string | null) =>
    planQuiet({ found: [], unread: [unreadOf(path)], hidden: [] }, recorded, { isWritable: () => true })
      .settings;
  expect(kept('/1')).toEqual([recorded[0]]);
  expect(kept(null)).toEqual(recorded);
});
