// needs: nothing
// What goes on record of settings once they are written.
import { expect, it } from 'vitest';
import type { QuietSetting } from '../../lib/account/assignments.js';
import type { Setting } from '../../lib/quiet/kernel/setting.js';
import { lookAtSettings, type QuietFacts } from '../../lib/quiet/look.js';
import type { Change, QuietPlan } from '../../lib/quiet/plan.js';
import { settingsAfter } from '../../lib/quiet/record.js';
import { NO_FILES } from '../support/quiet-machine.js';

const recordOf = (path: string, part: QuietSetting['part'] = 'interrupts'): QuietSetting => ({
  ...{ part, path, identity: null, original: '0-3', written: ['1-3'], refusal: null, isLeftover: false },
});
const setting = (path: string) => ({ path }) as Setting;

const [changed, restored] = [setting('/irq/1'), setting('/irq/2')];
const record = recordOf(changed.path);
const plan: QuietPlan = {
  changes: [{ setting: changed, record } as Change],
  restorations: [{ setting: restored, before: recordOf(restored.path) } as Change],
  foreign: [],
  settings: [record],
};
const refusal = (value?: string) => ({ reason: 'EINVAL', value });

it('is the plan’s record if nothing was refused', () => {
  expect(settingsAfter(plan, new Map())).toEqual([record]);
});

it('is a refusal, with what the kernel made of the value: that is numalign’s too', () => {
  const writtenAfter = (value?: string) => settingsAfter(plan, new Map([[changed, refusal(value)]]))[0];
  expect(writtenAfter()).toEqual({ ...record, refusal: 'EINVAL' });
  expect(writtenAfter('1')).toEqual({ ...record, refusal: 'EINVAL', written: ['1-3', '1'] });
  for (const known of ['1-3', '0-3']) expect(writtenAfter(known)).toEqual({ ...record, refusal: 'EINVAL' });
});

it('is a restoration that was refused, as a leftover', () => {
  expect(settingsAfter(plan, new Map([[restored, refusal()]]))).toEqual([
    record,
    { ...recordOf(restored.path), refusal: 'EINVAL', isLeftover: true },
  ]);
});

it('stays of those parts that cannot be seen, and of no others', async () => {
  const [seen, unseen] = [recordOf('/irq/1'), recordOf('/cpu/1', 'idle')];
  const hidden = (_: unknown, records: readonly QuietSetting[]) => records;
  const parts = [
    { name: 'interrupts', settings: () => [], hidden: () => [] },
    { name: 'idle', settings: () => [], hidden },
  ] as unknown as QuietFacts['parts'];
  const ground = { parts, files: NO_FILES, demands: [], recorded: [seen, unseen] } as unknown as QuietFacts;
  expect(await lookAtSettings(ground)).toEqual({ found: [], unread: [], hidden: [unseen] });
});
