// The machines of test/machines, which are described by their parts.
import { readdirSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

const folder = new URL('../machines/', import.meta.url);

/** Every machine, by the name of its file. */
export const corpus = () =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .map((file) => ({
      file,
      ...JSON.parse(readFileSync(new URL(file, folder), 'utf8')),
    }));

/** Real machines, as numalign has printed them: their names, and the JSON that it reads. */
export const captured = () =>
  gunzipSync(readFileSync(new URL('captured.jsonl.gz', folder)))
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

const range = (length, from, step) => Array.from({ length }, (_, i) => from + i * step);

/** The machine as JSON that numalign reads. */
export function machineJson({ parts, nodes }) {
  const optional = ['uncoreCache', 'coreKind'].filter((column) => column in parts[0]);
  const cpus = parts.flatMap(({ first, cores, step = 1, threads, socket, numa, ...rest }) =>
    range(cores, first, step).flatMap((core) =>
      threads.map((thread) => [core + thread, core, socket, numa, ...optional.map((column) => rest[column])]),
    ),
  );
  return {
    columns: ['cpu', 'core', 'socket', 'numa', ...optional],
    cpus,
    nodes: nodes.map(({ id, gib, distances }) => ({ id, memory: gib * 2 ** 30, distances })),
  };
}
