// needs: agents
// Notices of one file, whatever happens to it and to the folders above.
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
  const notices = { times: 0 };
  const watch = new FileWatch(path, () => {
    notices.times++;
    wake();
  });
  watch.start();
  onTestFinished(() => watch.stop());
  /** The next notice. */
  const next = () => new Promise<void>((resolve) => (wake = resolve));
  /**
   * Waits until the file, read at each notice, has this text; `isTold`: with a notice after this
   * call.
   */
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
  return { watch, notices, next, until };
}

/** All notices so far have arrived. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

function makeFile(text = '') {
  const folder = makeStateDir();
  mkdirSync(folder);
  const path = join(folder, 'state.json');
  writeFileSync(path, text);
  return { folder, path };
}

/** Replaces it like a compaction, with the former file under another name if `prev` is given. */
const REPLACE = `(path, text) => {
  fs.writeFileSync(path + '.new', text);
  fs.rmSync(path + '.prev', { force: true });
  if (text % 2 && fs.existsSync(path)) fs.linkSync(path, path + '.prev');
  fs.renameSync(path + '.new', path);
}`;

it('gives one notice of each append, and none of anything else in the folder', async () => {
  const { folder, path } = makeFile();
  const { notices, next } = watching(path);
  for (let n = 1; n <= 20; n++) {
    const heard = next();
    for (const name of ['lock', 'state.json.new', 'state.copy.json']) writeFileSync(join(folder, name), 'x');
    rmSync(join(folder, 'state.json.new'));
    appendFileSync(path, 'x');
    await heard;
    await new Promise(setImmediate);
    expect(notices.times).toBe(n);
  }
});

it.each([
  ['', false],
  [', even while a process has these open', true],
])('follows the path to a file and folders that are made, replaced and removed%s', async (_, isOpen) => {
  // The kernel reports the end of a folder once it is closed.
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

it('is not woken by a new file beside it', async () => {
  const folder = makeStateDir();
  const path = join(folder, 'state.json');
  mkdirSync(folder);
  const { notices, until } = watching(path);
  // Keeps the folder watched.
  const other = watching(join(folder, 'owners/file'));
  writeFileSync(path, '1');
  await until('1');
  mkdirSync(join(folder, 'owners'));
  await expect.poll(() => other.notices.times).toBeGreaterThan(0);
  const before = notices.times;
  writeFileSync(join(folder, 'lock'), 'x');
  writeFileSync(path, '2');
  await until('2');
  expect(notices.times).toBeLessThanOrEqual(before + 2);
});

it('gives no notice once it is stopped, and gives them again once it is started', async () => {
  const { path } = makeFile();
  const { watch, notices, next } = watching(path);
  watch.stop();
  appendFileSync(path, 'a');
  await new Promise(setImmediate);
  watch.restart();
  expect(notices.times).toBe(0);
  watch.start();
  const heard = next();
  appendFileSync(path, 'b');
  await heard;
  expect(notices.times).toBe(1);
});

it('misses none of many commits of another process, across replacements and removals', async () => {
  const { path } = makeFile('0');
  const { until } = watching(path);
  // At each number in a notice it writes up to that number, in place or in another file.
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
