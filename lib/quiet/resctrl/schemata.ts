// Schemata: which ways of each L3 cache a group of resctrl has, as its `schemata` file says
// (Documentation/filesystems/resctrl.rst): `L3:0=fffff;1=ffff0`, and with code and data apart
// `L3CODE:` and `L3DATA:`. Lines of other resources are passed over.

/** By resource, then by cache id. */
export type Schemata = ReadonlyMap<string, ReadonlyMap<number, number>>;

const LINE = /^\s*(L3|L3CODE|L3DATA):(.*)$/;
const PAIR = /^\s*(\d{1,9})=([0-9a-f]{1,8})\s*$/i;

/** Of any text; what is no pair of a cache id and a mask is passed over (`L3:uninitialized`). */
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

/** Of one cache, the ways in any line, or in every line. */
export function waysOf(schemata: Schemata, id: number, of: 'any' | 'every'): number {
  const masks = [...schemata.values()].map((line) => line.get(id)).filter((mask) => mask !== undefined);
  if (masks.length === 0) return 0;
  return masks.reduce((all, mask) => (of === 'any' ? all | mask : all & mask)) >>> 0;
}
