// needs: agents
// A sample of the runs of torture:damage and fuzz:state.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { budget } from '../support/budget.mjs';

const SEED = 5;

function run(script: string, ...options: string[]) {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...options], { encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
}

describe('a damaged state folder', () => {
  it('never gives a process a CPU that a living owner has', () => {
    const { status, said } = run(
      'damage.mjs',
      '--sample',
      budget({ all: '20', usual: '1' }),
      '--seed',
      String(SEED),
    );
    expect(/^0 violations$/m.test(said), said).toBe(true);
    expect(status, said).toBe(0);
  });
});

describe('a mutated state file or owner’s file', () => {
  it('is refused, or read as a value that survives writing and reading', () => {
    const { status, said } = run(
      'fuzz-state.mjs',
      '--seconds',
      budget({ all: '4', usual: '1' }),
      '--seed',
      String(SEED),
    );
    expect(said).toMatch(/\b0 failures/);
    expect(status, said).toBe(0);
  });
});
