// The list form of CPU sets, read and written. A second implementation, because the code under test
// must not judge itself.

export function idsOf(list: string): Set<number> {
  const ids = new Set<number>();
  for (const part of list === '' ? [] : list.split(',')) {
    const [first, last = first] = part.split('-').map(Number);
    for (let id = first!; id <= last!; id++) ids.add(id);
  }
  return ids;
}

export function listOf(ids: Iterable<number>): string {
  const runs: [first: number, last: number][] = [];
  for (const id of [...new Set(ids)].sort((a, b) => a - b)) {
    const run = runs.at(-1);
    if (run && run[1] === id - 1) run[1] = id;
    else runs.push([id, id]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}
