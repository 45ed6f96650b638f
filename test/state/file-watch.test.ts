// What is told of one file, whatever becomes of it and of the folders above.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { FileWatch } from '../../lib/state/files/file-watch.js';
import { makeStateDir } from '../support/state-dir.js';

function watching(path: string) {
  let wake = () => {};
  const told = { times: 0 };
  const watch = new FileWatch(path, () => {
    told.times++;
    wake();
  });
  watch.start();
  onTestFinished(() => watch.stop());
  /** What is told next. */
  const next = () => new Promise<void>((resolve) => (wake = resolve));
  /** Waits until the file, read whenever something is told, has this text; `isTold`: told after this call. */
  const until = async (text: string, isTold = false) => {
    if (isTold) await next();
    const read = () => {
      try {
        return readFileSync(path, 'utf8');
      } catch {
        return undefined;
      }
    };
    while (read() !== text) await next();
  };
  return { watch, told, next, until };
}

/** What has happened so far has been told. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

function makeFile(text = '') {
  const folder = makeStateDir();
  mkdirSync(folder);
  const path = join(folder, 'state.json');
  writeFileSync(path, text);
  return { folder, path };
}

/** As a compaction replaces it, with the file before kept under another name where `prev` is given. */
const REPLACE = `(path, text) => {
  fs.writeFileSync(path + '.new', text);
  fs.rmSync(path + '.prev', { force: true });
  if (text % 2 && fs.existsSync(path)) fs.linkSync(path, path + '.prev');
  fs.renameSync(path + '.new', path);
}`;

it('tells once of each append, and of nothing else in the folder', async () => {
  const { folder, path } = makeFile();
  const { told, next } = watching(path);
  for (let n = 1; n <= 20; n++) {
    const heard = next();
    for (const name of ['lock', 'state.json.new', 'state.copy.json']) writeFileSync(join(folder, name), 'x');
    rmSync(join(folder, 'state.json.new'));
    appendFileSync(path, 'x');
    await heard;
    await new Promise(setImmediate);
    expect(told.times).toBe(n);
  }
});

it('misses none of many commits of another process, across replacements and removals', async () => {
  const { path } = makeFile('0');
  const { until } = watching(path);
  // At each number that it is told it writes up to that, in place or by another file.
  const program = `
    const fs = require('node:fs'), { dirname } = require('node:path'), path = ${JSON.stringify(path)}, replace = ${REPLACE};
    let at = 0;
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      while (at < Number(line)) {
        at++;
        if (at % 5 === 0) {
          fs.rmSync(dirname(path), { recursive: true });
          fs.mkdirSync(dirname(path));
        }
        if (at % 3) replace(path, String(at));
        else fs.writeFileSync(path, String(at));
      }
    });`;
  const writer = spawn(process.execPath, ['-e', program], { stdio: ['pipe', 'inherit', 'inherit'] });
  onTestFinished(() => void writer.kill());
  const ended = once(writer, 'exit').then(() => Promise.reject(new Error('the writer has ended')));
  for (let at = 0, burst = 1; at < 3000; burst = (burst % 7) + 1) {
    at += burst;
    writer.stdin.write(`${at}\n`);
    await Promise.race([until(String(at)), ended]);
  }
  ended.catch(() => {});
}, 60_000);

it.each([
  ['', false],
  [', also while somebody has these open', true],
])('follows the path to a file and folders that are made, replaced and removed%s', async (_, isOpen) => {
  // The kernel tells of the end of a folder once it is closed.
  const hold = () => {
    const fd = isOpen ? openSync(folder, 'r') : undefined;
    if (fd !== undefined) onTestFinished(() => closeSync(fd));
  };
  const folder = join(makeStateDir(), 'a/b');
  const path = join(folder, 'state.json');
  mkdirSync(join(folder, '../..'));
  const { until } = watching(path);
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, 'made');
  await until('made', true);
  rmSync(path);
  await settled();
  writeFileSync(path, 'made again');
  await until('made again', true);
  hold();
  renameSync(folder, `${folder}-away`);
  mkdirSync(folder);
  writeFileSync(path, 'in another folder');
  await until('in another folder', true);
  hold();
  for (const each of [path, folder, join(folder, '..')]) {
    rmSync(each, { recursive: true });
    await settled();
  }
  mkdirSync(folder, { recursive: true });
  writeFileSync(path, 'in all new folders');
  await until('in all new folders', true);
});

it('wakes for no file beside it that comes once it is there', async () => {
  const folder = makeStateDir();
  const path = join(folder, 'state.json');
  mkdirSync(folder);
  const { told, until } = watching(path);
  // Keeps the folder watched.
  const other = watching(join(folder, 'owners/file'));
  writeFileSync(path, '1');
  await until('1');
  mkdirSync(join(folder, 'owners'));
  await expect.poll(() => other.told.times).toBeGreaterThan(0);
  const before = told.times;
  writeFileSync(join(folder, 'lock'), 'x');
  writeFileSync(path, '2');
  await until('2');
  expect(told.times).toBeLessThanOrEqual(before + 2);
});

it('tells no more once it is stopped, and again once it is started', async () => {
  const { path } = makeFile();
  const { watch, told, next } = watching(path);
  watch.stop();
  appendFileSync(path, 'a');
  await new Promise(setImmediate);
  watch.restart();
  expect(told.times).toBe(0);
  watch.start();
  const heard = next();
  appendFileSync(path, 'b');
  await heard;
  expect(told.times).toBe(1);
});
