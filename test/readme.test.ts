// Every JavaScript block of the documents runs as it stands, but in a state folder of its own.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { makeStateDir } from './support/state-dir.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The JavaScript blocks of a document, each with the output that is shown right after it (and a line that leads over to it). */
function blocksOf(path: string) {
  const text = readFileSync(`${ROOT}${path}`, 'utf8');
  return [...text.matchAll(/^```js\n(.*?)^```\n(?:\n(?:[^\n]*:\n\n)?```text\n(.*?)^```)?/gms)].map(
    ([, code, output], i) => [path, i + 1, code!, output] as const,
  );
}

const blocks = [
  'README.md',
  'docs/admission.md',
  'docs/audit.md',
  'docs/changes.md',
  'docs/devices.md',
  'docs/enforcement.md',
  'docs/grants.md',
  'docs/isolated-cpus.md',
  'docs/kubelet.md',
  'docs/memory.md',
  'docs/metrics.md',
  'docs/reconcile.md',
  'docs/threads.md',
].flatMap(blocksOf);

// Numbers depend on the machine.
const shape = (text: string) => text.replace(/\d+(-\d+)?/g, 'N');

function run(code: string) {
  const stateDir = `stateDir: ${JSON.stringify(makeStateDir())}`;
  // Simulated machines have none.
  const own = code
    .replace('openManager()', `openManager({ ${stateDir} })`)
    .replace(/openManager\(\{(?!\s*topology)/, `openManager({ ${stateDir},`);
  return spawnSync(process.execPath, ['--input-type=module', '-e', own], { cwd: ROOT, encoding: 'utf8' });
}

describe('the documents', () => {
  it.each(blocks)('%s has a block %i that runs, and prints what is shown', (_path, _number, code, output) => {
    const { status, stdout, stderr } = run(code);
    expect([status, stderr]).toEqual([0, '']);
    if (output !== undefined) expect(shape(stdout)).toBe(shape(output));
    // What the comment behind a console.log promises.
    for (const [, promised] of code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)) expect(stdout).toContain(promised!);
  });

  it('show output where they should', () => {
    expect(blocks.filter(([, , , output]) => output !== undefined).length).toBe(5);
  });
});

describe('the list of errors', () => {
  it('has a row for every code, and none for others', () => {
    const codes = (path: string, pattern: RegExp) =>
      [...readFileSync(`${ROOT}${path}`, 'utf8').matchAll(pattern)].map((match) => match[1]!).sort();
    expect(codes('docs/errors.md', /^\| `(ERR_\w+)` \|/gm)).toEqual(codes('lib/errors.ts', /^ {2}\| '(ERR_\w+)'/gm));
  });
});
