// The part of docs/benchmarks.md that benchmarks write: what is between two marks.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A function that replaces what is between `<!-- NAME -->` and `<!-- end of NAME -->` of
 * benchmarks.md in this folder. Throws where it has no such marks.
 */
export function documentPart(folder, name) {
  const file = join(folder, 'benchmarks.md');
  const text = readFileSync(file, 'utf8');
  const marks = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const [begin, end] = marks.map((mark) => text.indexOf(mark));
  if (begin < 0 || end < begin) throw new Error(`${file}: there are no marks ${marks.join(' and ')}`);
  const [head, tail] = [text.slice(0, begin + marks[0].length), text.slice(end)];
  return (parts) => writeFileSync(file, [head, ...parts, tail].join('\n\n'));
}
