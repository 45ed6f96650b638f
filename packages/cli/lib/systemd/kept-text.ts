// KeptText: a file that numalign makes, with a head that shows whether a user has edited it. Pure.
import { createHash } from 'node:crypto';

const HEAD = '# Made by `numalign setup`, which replaces it; `numalign setup --remove` takes it away.';
const SUM = '# As it was made: ';

const sumOf = (body: string) => createHash('sha256').update(body).digest('hex').slice(0, 16);

export const keptText = (body: string) => `${HEAD}\n${SUM}${sumOf(body)}\n${body}`;

/** The text below the head of an unchanged file; undefined if the file was edited. */
export function uneditedBody(text: string): string | undefined {
  const [head, sum, ...lines] = text.split('\n');
  const body = lines.join('\n');
  return head === HEAD && sum === `${SUM}${sumOf(body)}` ? body : undefined;
}
