// needs: nothing
// What quiet grants ask for, and what of it two states have in common.
import { expect, it } from 'vitest';
import type { QuietPart } from '../../../lib/account/pod-assignment.js';
import { demandsAmong, demandsFor, partsOf } from '../../../lib/quiet/kernel/demands.js';
import { quiet } from '../../support/quiet.js';

const [one, two] = [quiet('1-2'), quiet('3', { interrupts: false })];
/** The same, read from another text. */
const again = <T extends object>(value: T): T => ({ ...value });
const uids = (demands: readonly { uid: string }[]) => demands.map(({ uid }) => uid);

it('demands stay the same list if the others have them all', () => {
  const demands = [one, two];
  expect(demandsAmong(demands, demands)).toBe(demands);
  expect(demandsAmong(demands, [again(two), again(one), quiet('0')])).toBe(demands);
});

it('demands are only those that the others have, too, on the CPUs of both', () => {
  expect(demandsAmong([one, two], [two])).toEqual([two]);
  const narrow = { ...one, cpus: quiet('2,5').cpus };
  expect(demandsAmong([one, two], [narrow])).toEqual([{ ...one, cpus: quiet('2').cpus }]);
  expect(demandsAmong([one], [{ ...one, cpus: quiet('5').cpus }])).toEqual([]);
});

it('a grant that asks for something else has no demand in common with the former one', () => {
  expect(demandsAmong([one], [{ ...one, request: two.request }])).toEqual([]);
});

it('a part is asked for by those grants that have not declined it', () => {
  expect(uids(demandsFor([one, two], 'interrupts'))).toEqual([one.uid]);
  expect(uids(demandsFor([one, two], 'cache'))).toEqual([]);
  expect(partsOf(two.request, ['interrupts', 'idle', 'cache'])).toEqual(['idle']);
});

it('housekeeping CPUs are left to kernel work, and have the other parts too', () => {
  const housekeeping = { ...quiet('1-4'), housekeeping: quiet('1-2').cpus };
  const cpusFor = (part: QuietPart) => String(demandsFor([housekeeping], part)[0]?.cpus);
  const parts = ['interrupts', 'workqueues', 'packets', 'idle', 'frequency'] as const;
  expect(parts.map(cpusFor)).toEqual(['3-4', '3-4', '3-4', '1-4', '1-4']);
});

it('housekeeping CPUs of either of two demands are not quiet in both', () => {
  const with1 = { ...quiet('1-4'), housekeeping: quiet('1').cpus };
  const with2 = { ...quiet('1-4'), housekeeping: quiet('2').cpus };
  expect(demandsAmong([with1], [with2])).toEqual([{ ...with1, housekeeping: quiet('1-2').cpus }]);
  expect(demandsAmong([with1], [again(with1)])[0]).toBe(with1);
});
