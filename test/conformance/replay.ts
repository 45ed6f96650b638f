// Replays files of recorded cases and reports. run.ts is the program around it.
import { basename } from 'node:path';
import { type Case, describeError, failed, type Kind, type Numalign, type Result } from './case.js';
import { KINDS } from './kinds.js';
import { asCase, contextOf, InputError, isMachine, readLines } from './read.js';

const USAGE =
  'usage: npm run conformance -- FILE…   (newline-delimited JSON, .jsonl or .jsonl.gz; see test/conformance/vectors/README.md)';
const FAILURES_SHOWN = 20;

export interface CaseFile {
  readonly path: string;
  readonly kind: Kind;
  readonly cases: readonly Case[];
}

/** A case that failed, with what was expected and what came. */
export type Failure = { readonly id: string } & Extract<Result, { outcome: 'failed' }>['detail'];

export interface Report {
  passed: number;
  diverged: number;
  /** How many diverged under each letter. */
  readonly letters: Record<string, number>;
  readonly failures: Failure[];
}

/** Reads a file of cases, all of one kind; undefined for a file of machines. @throws InputError */
export function readCases(path: string): CaseFile | undefined {
  const lines = readLines(path);
  if (lines.length > 0 && lines.every((line) => isMachine(line.value))) return undefined;
  const ids = new Set<string>();
  let kind: Kind | undefined;
  const cases = lines.map((line) => {
    const vector = asCase(path, line);
    if (ids.has(vector.id)) throw new InputError(`${path}: line ${line.number} repeats the id ${vector.id}`);
    ids.add(vector.id);
    kind ??= KINDS.find((candidate) => candidate.matches(vector));
    if (!kind?.matches(vector)) {
      throw new InputError(
        `${path}: line ${line.number} is not a case of ${kind ? `kind ${kind.name}` : 'any known kind'}`,
      );
    }
    return vector;
  });
  // A file that lost its content must not look like one that passes.
  if (!kind) throw new InputError(`${path}: holds no cases`);
  return { path, kind, cases };
}

/** Called with every case before it is replayed. */
export type OnCase = (what: string) => void;

/**
 * `enough`: after this many failures no more cases are replayed.
 *
 * @throws InputError if the machines beside it are missing or malformed
 */
export async function replay(
  { path, kind, cases }: CaseFile,
  numalign: Numalign,
  onCase?: OnCase,
  enough = Number.POSITIVE_INFINITY,
): Promise<Report> {
  const context = contextOf(path, numalign);
  const report: Report = { passed: 0, diverged: 0, letters: {}, failures: [] };
  for (const vector of cases) {
    if (report.failures.length >= enough) break;
    onCase?.(`${basename(path)}: ${vector.id}`);
    let result: Result;
    try {
      result = await kind.run(vector, context);
    } catch (error) {
      if (error instanceof InputError) throw error;
      result = failed('a replay to the end', describeError(error));
    }
    if (result.outcome === 'passed') report.passed += 1;
    else if (result.outcome === 'failed') report.failures.push({ id: vector.id, ...result.detail });
    else {
      report.diverged += 1;
      report.letters[result.letter] = (report.letters[result.letter] ?? 0) + 1;
    }
  }
  return report;
}

const counts = (passed: number, failures: number, diverged: number) =>
  `${passed} passed, ${failures} failed, ${diverged} diverged`;

/**
 * Replays every file, reports to `print` line by line, and returns the exit code: 0, 1 for any
 * failure, 2 for unusable input.
 */
export async function main(
  paths: readonly string[],
  numalign: Numalign,
  print: (line: string) => void,
  complain: (line: string) => void,
  onCase?: OnCase,
): Promise<number> {
  try {
    const unknown = paths.find((path) => path.startsWith('-'));
    if (unknown !== undefined) throw new InputError(`unknown option ${unknown}\n${USAGE}`);
    if (paths.length === 0) throw new InputError(`no file given\n${USAGE}`);
    return await replayAll(paths, numalign, print, onCase);
  } catch (error) {
    if (!(error instanceof InputError)) throw error;
    complain(error.message);
    return 2;
  }
}

async function replayAll(
  paths: readonly string[],
  numalign: Numalign,
  print: (line: string) => void,
  onCase?: OnCase,
): Promise<number> {
  // All are read first: a malformed line in the last file is reported before the others have taken
  // minutes.
  const files = paths.map((path) => ({ name: basename(path), file: readCases(path) }));
  let [passed, failures, diverged] = [0, 0, 0];
  const letters = new Map<string, number>();
  for (const { name, file } of files) {
    if (!file) {
      print(`${name}: machines, no cases`);
      continue;
    }
    const report = await replay(file, numalign, onCase);
    for (const { id, expected, got } of report.failures.slice(0, FAILURES_SHOWN)) {
      print(`${name}: ${id}: expected ${expected}, got ${got}`);
    }
    if (report.failures.length > FAILURES_SHOWN)
      print(`${name}: and ${report.failures.length - FAILURES_SHOWN} more`);
    print(`${name}: ${file.kind.name}: ${counts(report.passed, report.failures.length, report.diverged)}`);
    passed += report.passed;
    failures += report.failures.length;
    diverged += report.diverged;
    for (const [letter, n] of Object.entries(report.letters))
      letters.set(letter, (letters.get(letter) ?? 0) + n);
  }
  if (diverged > 0) {
    const byLetter = [...letters].sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }));
    print(`diverged by ${byLetter.map(([letter, n]) => `${letter}: ${n}`).join(', ')}`);
  }
  print(counts(passed, failures, diverged));
  return failures === 0 ? 0 : 1;
}
