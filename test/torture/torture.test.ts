// needs: agents
// Short runs of the torture scripts. CONTRIBUTING.md says what they do and how to run them for
// longer.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { budget } from '../support/budget.mjs';

const SEED = 20_26;

/**
 * Runs a script of this folder on the built package and returns its output, which is also the
 * message of a failure.
 */
function run(script: string, ...options: string[]): string {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...options], { encoding: 'utf8' });
  const said = `${stdout}${stderr}`;
  expect(/^0 violations$/m.test(said), said).toBe(true);
  expect(status, said).toBe(0);
  return stdout;
}

/**
 * Runs torture.mjs for some seconds, and for longer as long as its output shows no work of each kind: a
 * busy machine may leave it no time for that.
 */
function torture(seconds: { all: number; usual: number }, kinds: readonly RegExp[], ...options: string[]) {
  for (let now = budget(seconds); ; now *= 4) {
    const said = run('torture.mjs', ...options, '--seconds', String(now), '--seed', String(SEED));
    if (now <= 60 && !kinds.every((kind) => kind.test(said))) continue;
    for (const kind of kinds) expect(said).toMatch(kind);
    return;
  }
}

const ACQUIRED = /operations: acquire [1-9]/;

describe('processes that are stopped and killed at every step', () => {
  it('never own a CPU twice, lose none, and leave a valid state', () => {
    torture({ all: 10, usual: 3 }, [ACQUIRED, /checked: [1-9]\d* holdings/], '--processes', '6');
  });
});

describe('processes that are stopped and killed while grants change settings of the kernel', () => {
  it('change no setting without a record and a grant that needs it', () => {
    const kinds = [ACQUIRED, /, [1-9]\d* snapshots of the kernel's settings/];
    torture({ all: 10, usual: 3 }, kinds, '--quiet', '--processes', '4');
  });
});

describe('processes that are stopped, busy and killed while grants move, grow and shrink', () => {
  it('never own a CPU twice, whatever is removed and restored', () => {
    const kinds = [ACQUIRED, /disturbances of the folder [1-9]/];
    torture({ all: 60, usual: 4 }, kinds, '--changing', '--disturbed', '--processes', '4');
  });
});

describe('a power cut at any step of a transaction', () => {
  it('leaves the generation before it or, always once it is acknowledged, the one after it', () => {
    expect(run('lost-writes.mjs')).toMatch(/[1-9]\d{2,} images/);
  });
});
