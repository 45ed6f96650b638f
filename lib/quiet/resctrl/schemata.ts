// Schemata: which ways of each L3 cache a resctrl group has, as in its `schemata` file
// (Documentation/filesystems/resctrl.rst): `L3:0=fffff;1=ffff0`, or `L3CODE:` and `L3DATA:` if code
// and data are apart. Lines of other resources are skipped.

/** By resource, then by cache id. */
export type Schemata = ReadonlyMap<string, ReadonlyMap<number, number>>;

const LINE = /^\s*(L3|L3CODE|L3DATA):(.*)$/;
const PAIR = /^\s*(\d{1,9})=([0-9a-f]{1,8})\s*$/i;

/** Takes any text; skips what is not a pair of a cache id and a mask (`L3:uninitialized`). */
export function parseSchemata(text: string): Schemata {
  const schemata = new Map<string, Map<number, number>>();
  for (const line of text.split('\n')) {
    const [, resource, pairs] = LINE.exec(line) ?? [];
    if (resource === undefined) continue;
    const masks = new Map<number, number>();
    for (const pair of pairs!.split(';')) {
      const [, id, mask] = PAIR.exec(pair) ?? [];
      if (id !== undefined) masks.set(Number(id), Number.parseInt(mask!, 16));
    }
    if (masks.size > 0) schemata.set(resource, masks);
  }
  return schemata;
}

/** Equal schemata have equal texts. */
export function printSchemata(schemata: Schemata): string {
  const lines = [...schemata].map(([resource, masks]) => {
    const pairs = [...masks].sort(([a], [b]) => a - b).map(([id, mask]) => `${id}=${mask.toString(16)}`);
    return `${resource}:${pairs.join(';')}`;
  });
  return lines.sort().join('\n');
}

/** The schemata with each mask replaced. */
export function mapMasks(schemata: Schemata, change: (mask: number, id: number) => number): Schemata {
  return new Map(
    [...schemata].map(([resource, masks]) => [
      resource,
      new Map([...masks].map(([id, mask]) => [id, change(mask, id)])),
    ]),
  );
}

/** The ways of one cache in any line, or in every line. */
export function waysOf(schemata: Schemata, id: number, of: 'any' | 'every'): number {
  const masks = [...schemata.values()].map((line) => line.get(id)).filter((mask) => mask !== undefined);
  if (masks.length === 0) return 0;
  return masks.reduce((all, mask) => (of === 'any' ? all | mask : all & mask)) >>> 0;
}
