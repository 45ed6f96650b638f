// JsonLines: a stream of JSON texts, one per line.
import { ApiError } from './api-error.js';

const NEWLINE = 0x0a;

/** More than any object that etcd accepts (1.5 MiB), as JSON. */
export const LONGEST_LINE = 4 * 2 ** 20;

/**
 * The values of a stream, as its lines arrive. An incomplete last line is ignored.
 * @throws ERR_API_ANSWER for a line that is not JSON, or longer than `longest` bytes; what the
 *   stream throws
 */
export async function* jsonLines(
  stream: AsyncIterable<Uint8Array>,
  longest: number = LONGEST_LINE,
): AsyncGenerator<unknown, void, undefined> {
  let parts: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stream) {
    let rest = chunk;
    for (;;) {
      const end = rest.indexOf(NEWLINE);
      const part = end < 0 ? rest : rest.subarray(0, end);
      length += part.length;
      if (length > longest)
        throw new ApiError('ERR_API_ANSWER', `a line of a watch is longer than ${longest} bytes`, {
          valid: longest,
        });
      if (part.length > 0) parts.push(part);
      if (end < 0) break;
      rest = rest.subarray(end + 1);
      const line = Buffer.concat(parts).toString('utf8');
      [parts, length] = [[], 0];
      if (line.trim() !== '') yield parse(line);
    }
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new ApiError(
      'ERR_API_ANSWER',
      `a line of a watch is not JSON: ${JSON.stringify(line.slice(0, 80))}`,
      {
        value: line.slice(0, 80),
        cause,
      },
    );
  }
}
