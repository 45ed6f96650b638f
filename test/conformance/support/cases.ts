// Files of cases for tests of the runner, and what becomes of them.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import * as numalign from '../../support/package.js';
import type { Numalign } from '../case.js';
import { main, readCases, replay } from '../replay.js';

export type Fields = Record<string, unknown>;

/** The path of the recorded cases of this name. */
export const vectors = (name: string) =>
  fileURLToPath(new URL(`../vectors/${name}.jsonl.gz`, import.meta.url));

const machines = gunzipSync(readFileSync(vectors('topologies'))).toString();

/**
 * Writes cases (objects, or lines as they are) beside the machines, for as long as the test runs.
 * Answers the file's path.
 */
export function fileOf(
  cases: readonly (Fields | string)[],
  { name = 'cases.jsonl', topologies = machines as string | null } = {},
) {
  const folder = mkdtempSync(join(tmpdir(), 'conformance-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  if (topologies !== null) writeFileSync(join(folder, 'topologies.jsonl'), topologies);
  const text = cases.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)) + '\n').join('');
  writeFileSync(join(folder, name), name.endsWith('.gz') ? gzipSync(text) : text);
  return join(folder, name);
}

/** Replays one case and answers how it came out: `passed`, `failed` or the letter. */
export async function outcomeOf(vector: Fields, api: Numalign = numalign): Promise<string> {
  const { failures, letters } = await replay(readCases(fileOf([{ id: 'x', ...vector }]))!, api);
  if (failures.length > 0) return 'failed';
  return Object.keys(letters)[0] ?? 'passed';
}

/** The runner's exit code and what it prints. */
export async function run(...paths: string[]) {
  const [printed, complaints]: [string[], string[]] = [[], []];
  const code = await main(
    paths,
    numalign,
    (line) => printed.push(line),
    (line) => complaints.push(line),
  );
  return { code, printed, complaints };
}
