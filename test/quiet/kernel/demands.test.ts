// needs: nothing
// What quiet grants ask for, and what of it two states have in common.
import { expect, it } from 'vitest';
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
