// needs: nothing
// The value of grant.quiet.
import { beforeAll, expect, it } from 'vitest';
import type { QuietSetting } from '../../lib/account/assignments.js';
import { emptyAssignments } from '../../lib/account/assignments.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import type { Part, Setting } from '../../lib/quiet/kernel/setting.js';
import { noOutcome, quietOutcome } from '../../lib/quiet/outcome.js';
import { quiet } from '../support/quiet.js';
import { NO_FILES } from '../support/quiet-machine.js';
import { podOf } from '../support/quiet-world.js';

let topology: Topology;
beforeAll(async () => {
  topology = await discover({ synthetic: 'core:4 pu:1' });
});

const demand = quiet('2');
const daemon = {
  ...{ path: '/socket', identity: '7 1', title: 'irqbalance (process 7)' },
  read: async () => '',
} as unknown as Setting;
const part = { name: 'interrupts', settings: () => [daemon], obstacles: () => [] } as unknown as Part;
const record: QuietSetting = {
  ...{ part: 'interrupts', path: daemon.path, identity: daemon.identity, original: '' },
  ...{ written: ['2'], refusal: null, isLeftover: false },
};
const outcomeOf = (recorded: QuietSetting[]) =>
  quietOutcome(
    { parts: [part], files: NO_FILES, topology, demands: [demand], recorded },
    demand.uid,
    () => [],
  ).parts.interrupts;

it('names a setting that refuses its value, even if it can only be read asynchronously', () => {
  expect(outcomeOf([{ ...record, refusal: 'EACCES' }])).toEqual({
    reached: 'no',
    reasons: [
      'irqbalance (process 7) refuses the value that quiet needs (EACCES; acquire the grant as root)',
    ],
  });
});

it('does not mention settings that accepted their values', () => {
  expect(outcomeOf([record])).toEqual({ reached: 'yes', reasons: [] });
});

it.each([
  ['EACCES', 'IRQ 24 is still on CPUs 2: the kernel refuses 0-1,3 (EACCES; acquire the grant as root)'],
  [
    'EROFS',
    'IRQ 24 is still on CPUs 2: the kernel refuses 0-1,3 (EROFS; in a container, have it mounted writable)',
  ],
  ['EPERM', 'IRQ 24 is still on CPUs 2: the kernel refuses 0-1,3 (EPERM)'],
])(
  'names a setting that is refused by %s, with what to do where something can be done',
  (refusal, reason) => {
    const irq = {
      path: '/irq/24',
      identity: null,
      title: 'IRQ 24',
      read: () => '0-3',
      disturbs: () => demand.cpus,
    };
    const its = { ...part, settings: () => [irq as unknown as Setting] };
    const recorded = [
      { ...record, path: irq.path, identity: null, original: '0-3', written: ['0-1,3'], refusal },
    ];
    const ground = { parts: [its], files: NO_FILES, topology, demands: [demand], recorded };
    const { parts } = quietOutcome(ground, demand.uid, () => []);
    expect(parts.interrupts).toEqual({ reached: 'no', reasons: [reason] });
  },
);

it('names settings that cannot be read', () => {
  const refuse = () => {
    throw Object.assign(new Error('refused'), { errno: -13, code: 'EACCES' });
  };
  const irq = { path: '/irq/24', identity: null, title: 'IRQ 24', read: refuse } as unknown as Setting;
  const reasons = (settings: () => Setting[]) => {
    const ground = {
      files: NO_FILES,
      topology,
      demands: [demand],
      recorded: [],
      parts: [{ ...part, settings }],
    };
    return quietOutcome(ground, demand.uid, () => []).parts.interrupts;
  };
  expect(reasons(() => [irq])).toEqual({ reached: 'no', reasons: ['IRQ 24 cannot be read (EACCES)'] });
  expect(reasons(refuse)).toEqual({
    reached: 'no',
    reasons: ['the settings of interrupts cannot be read (EACCES)'],
  });
});

it('is reached in part if one setting is in force, for the CPUs of its own grant', () => {
  const ofAll = (_: string, { cpus }: { cpus: object }) => cpus;
  const irq = (name: string, disturbs: unknown) =>
    ({ path: `/irq/${name}`, identity: null, title: `IRQ ${name}`, read: () => '1', disturbs }) as unknown;
  const quietIrq = irq('25', () => CpuSet.EMPTY);
  const its = { ...part, settings: () => [irq('24', ofAll), quietIrq] as Setting[] };
  const inForce = { ...record, path: '/irq/25', identity: null, written: ['1'] };
  const outcomeWith = (recorded: QuietSetting[]) => {
    const demands = [quiet('3'), demand];
    const ground = { parts: [its], files: NO_FILES, topology, demands, recorded };
    const outcome = quietOutcome(ground, demand.uid, (cpus) => [`work on ${cpus}`]);
    expect(outcome.unchanged).toEqual(['work on 2']);
    return outcome;
  };
  const reasons = ['IRQ 24 is still on CPUs 2'];
  expect(outcomeWith([inForce]).parts.interrupts).toEqual({ reached: 'partly', reasons });
  expect(outcomeWith([{ ...inForce, written: ['0'] }]).parts.interrupts).toEqual({ reached: 'no', reasons });
});

it('is nothing of what a grant asks for if nothing can be reached, with the reason', () => {
  const request = { ...demand.request, workqueues: false, packets: false, idle: null, frequency: false };
  const pod = podOf('one', 'a', CpuSet.of(2), request);
  const state = { ...emptyAssignments(DEFAULT_SETTINGS), pods: [pod] };
  expect(noOutcome(state, 'one', 'no rights')).toEqual({
    parts: { interrupts: { reached: 'no', reasons: ['no rights'] } },
    unchanged: [],
  });
  expect(noOutcome(state, 'two', 'no rights')).toEqual({ parts: {}, unchanged: [] });
});
