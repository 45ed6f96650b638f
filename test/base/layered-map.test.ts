// needs: agents
// A map from which changed copies are made.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { LayeredMap } from '../../lib/base/collections/layered-map.js';

const KEYS = 60;

it('each keeps its content, however many copies follow', () => {
  const changes = fc.array(fc.tuple(fc.nat(KEYS), fc.option(fc.nat(), { nil: undefined })), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(fc.array(changes, { maxLength: 30 }), (steps) => {
      const plain = new Map<number, number>([[0, 7]]);
      let map = LayeredMap.from(plain);
      const made = [{ map, entries: new Map(plain) }];
      for (const step of steps) {
        for (const [key, value] of step) value === undefined ? plain.delete(key) : plain.set(key, value);
        map = map.with(step);
        made.push({ map, entries: new Map(plain) });
      }
      for (const { map, entries } of made)
        for (let key = 0; key <= KEYS; key++) expect(map.get(key)).toBe(entries.get(key));
    }),
  );
});
