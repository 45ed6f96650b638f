// Before each file of judges: the processes that its tests start run the same mutant. Stryker knows
// only its own.
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, inject, vi } from 'vitest';

type Counts = Record<string, number>;

interface Stryker {
  activeMutant?: string;
  currentTestId?: string;
  mutantCoverage?: { static: Counts; perTest: Record<string, Counts> };
}

// Stryker's own file for setting up is run before this one.
const { __stryker__: stryker } = globalThis as unknown as { __stryker__: Stryker };
const tests = new Map<string, string>();
// Most mutants that are not killed at once make a test wait in vain.
const provided = (name: 'mode' | 'activeMutant') => inject(name as never) as string | undefined;
if (provided('mode') === 'mutant' && provided('activeMutant') !== 'none')
  vi.setConfig({ testTimeout: 15_000 });

const folder = mkdtempSync(join(tmpdir(), 'numalign-mutants-'));
// Some processes are other users'.
chmodSync(folder, 0o755);

beforeAll(() => {
  if (stryker.activeMutant !== undefined) process.env.__STRYKER_ACTIVE_MUTANT__ = stryker.activeMutant;
});

beforeEach(() => {
  const { currentTestId } = stryker;
  if (currentTestId === undefined) return;
  const file = join(folder, String(tests.size));
  writeFileSync(file, '');
  chmodSync(file, 0o666);
  tests.set(file, currentTestId);
  process.env.NUMALIGN_MUTANTS_COVERAGE = file;
  process.env.NODE_OPTIONS = `--import=${new URL('child.mjs', import.meta.url)}`;
});

afterAll(() => {
  stryker.mutantCoverage ??= { static: {}, perTest: {} };
  const { perTest } = stryker.mutantCoverage;
  for (const [file, test] of tests) {
    const mutants = readFileSync(file, 'utf8').split('\n').filter(Boolean);
    perTest[test] = { ...Object.fromEntries(mutants.map((mutant) => [mutant, 1])), ...perTest[test] };
  }
  rmSync(folder, { recursive: true, force: true });
});
