// needs: documents
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeStateDir } from '../support/state-dir.js';

it('npm test only minds the temporary folders that its own tests leave', async () => {
  const folder = makeStateDir();
  mkdirSync(folder);
  const args = ['scripts/test.mjs', '--project', 'nothing', 'test/machine/cpu-set.test.ts'];
  const child = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, TMPDIR: folder },
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    mkdirSync(join(folder, 'numalign-of-another-program'), { recursive: true });
  });
  expect(await once(child, 'close'), output).toEqual([0, null]);
  expect(readdirSync(folder)).toEqual(['numalign-of-another-program']);
});
