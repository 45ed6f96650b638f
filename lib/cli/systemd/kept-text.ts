// KeptText: a file of numalign's own, whose head shows whether a user has edited it. Pure
// but for the hash.
import { createHash } from 'node:crypto';

const HEAD = '# Made by `numalign setup`, which replaces it; `numalign setup --remove` takes it away.';
const SUM = '# As it was made: ';

const sumOf = (body: string) => createHash('sha256').update(body).digest('hex').slice(0, 16);

export const keptText = (body: string) => `${HEAD}\n${SUM}${sumOf(body)}\n${body}`;

/** What stands below the head of a file that is as it was made; undefined where it was edited. */
export function unedited(text: string): string | undefined {
  const [head, sum, ...lines] = text.split('\n');
  const body = lines.join('\n');
  return head === HEAD && sum === `${SUM}${sumOf(body)}` ? body : undefined;
}
