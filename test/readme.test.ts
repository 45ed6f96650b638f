// Every JavaScript block of the README runs as it stands, but in a state folder of its own.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { makeStateDir } from './support/state-dir.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(`${ROOT}README.md`, 'utf8');
const blocks = [...readme.matchAll(/^```js\n(.*?)^```/gms)].map((match) => match[1]!);
const outputs = [...readme.matchAll(/^```text\n(.*?)^```/gms)].map((match) => match[1]!);

// Numbers depend on the machine.
const shape = (text: string) => text.replace(/\d+(-\d+)?/g, 'N');

function run(code: string) {
  const own = code.replace('openManager()', `openManager({ stateDir: ${JSON.stringify(makeStateDir())} })`);
  return spawnSync(process.execPath, ['--input-type=module', '-e', own], { cwd: ROOT, encoding: 'utf8' });
}

describe('the README', () => {
  it.each(blocks.map((code, i) => [i + 1, code] as const))('has a block %i that runs', (_, code) => {
    const { status, stdout, stderr } = run(code);
    expect([status, stderr]).toEqual([0, '']);
    // What the comment behind a console.log promises.
    for (const [, promised] of code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)) expect(stdout).toContain(promised!);
  });

  it('shows what its first block prints', () => {
    expect(shape(run(blocks[0]!).stdout)).toBe(shape(outputs[0]!));
  });
});

describe('the list of errors', () => {
  it('has a row for every code, and none for others', () => {
    const codes = (path: string, pattern: RegExp) =>
      [...readFileSync(`${ROOT}${path}`, 'utf8').matchAll(pattern)].map((match) => match[1]!).sort();
    expect(codes('docs/errors.md', /^\| `(ERR_\w+)` \|/gm)).toEqual(codes('lib/errors.ts', /^ {2}\| '(ERR_\w+)'/gm));
  });
});
