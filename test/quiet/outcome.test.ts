// What a grant is told of its quiet.
import { beforeAll, expect, it } from 'vitest';
import type { QuietSetting } from '../../lib/account/quiet/quiet-record.js';
import { discover, type Topology } from '../../lib/entries/topology.js';
import type { Part, Setting } from '../../lib/quiet/kernel/setting.js';
import { quietOutcome } from '../../lib/quiet/outcome.js';
import { quiet } from '../support/quiet.js';
import { NO_FILES } from '../support/quiet-machine.js';

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

it('names what has refused what it was told, though it cannot be asked at once', () => {
  expect(outcomeOf([{ ...record, refusal: 'EACCES' }])).toEqual({
    reached: 'no',
    reasons: ['irqbalance (process 7) has refused what it was told (EACCES)'],
  });
});

it('says nothing of what has taken what it was told', () => {
  expect(outcomeOf([record])).toEqual({ reached: 'yes', reasons: [] });
});
