// needs: modules
// The random UUIDs of the addon.
import { expect, it } from 'vitest';
import { native } from '../../lib/base/native.js';

const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

it('random UUIDs are of version 4 with all other bits random', () => {
  const uids = Array.from({ length: 200 }, () => native.randomUuid());
  for (const uid of uids) expect(uid).toMatch(UUID);
  expect(new Set(uids).size).toBe(200);
  // Each digit takes all of its values: 1 run in 10^4 would fail by chance, with 16 values of 31 digits.
  const values = (at: number) => new Set(uids.map((uid) => uid[at])).size;
  const places = [...uids[0]!].map((_, at) => at).filter((at) => ![8, 13, 14, 18, 19, 23].includes(at));
  for (const at of places) expect(values(at)).toBeGreaterThan(11);
  expect([values(14), values(19)]).toEqual([1, 4]);
});
