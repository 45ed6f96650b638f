// needs: machine
// What a refused change leaves behind when the process can open and write no file any more.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { makeStateDir } from '../../support/state-dir.js';

const pathOf = (name: string) => fileURLToPath(new URL(name, import.meta.url));

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  const flags = ['-shared', '-fPIC', '-O1', '-std=gnu11', '-Wall', '-Wextra', '-Werror'];
  execFileSync('cc', [...flags, '-o', join(folder, 'failing-files.so'), pathOf('failing-files.c'), '-ldl']);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function run(what: 'every' | 'ended'): Promise<{ refusals: number; wrong: string[] }> {
  const member = spawn('sleep', ['1000'], { stdio: 'ignore' });
  onTestFinished(() => void member.kill());
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [pathOf('program.mjs'), what, makeStateDir(), String(member.pid)],
    { env: { ...process.env, LD_PRELOAD: join(folder, 'failing-files.so'), UV_THREADPOOL_SIZE: '1' } },
  );
  return JSON.parse(stdout);
}

it('puts every mask back after a change that is refused because all file calls fail from any one on', async () => {
  const { refusals, wrong } = await run('every');
  expect(wrong).toEqual([]);
  expect(refusals).toBeGreaterThan(20);
});

it('brings the other threads back when a release is refused during which a thread ends', async () => {
  expect(await run('ended')).toEqual({ refusals: 1, wrong: [] });
});
