// needs: nothing
// Files of a folder in place of those of the kernel.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { type KernelFiles, kernelFiles, visibleFiles } from '../../../lib/quiet/kernel/kernel-files.js';
import { thrownBy } from '../../support/error-of.js';
import { makeStateDir } from '../../support/state-dir.js';

function irqFiles(): { root: string; files: KernelFiles } {
  const root = makeStateDir();
  mkdirSync(`${root}/irq/24`, { recursive: true });
  mkdirSync(`${root}/irq/23`);
  writeFileSync(`${root}/irq/24/smp`, '0-3\n');
  return { root, files: kernelFiles(root) };
}

it('are read and written, and their folders listed in order', () => {
  const { root, files } = irqFiles();
  expect(files.read('/irq/24/smp')).toBe('0-3');
  files.write('/irq/24/smp', '5');
  expect(readFileSync(`${root}/irq/24/smp`, 'utf8')).toBe('5-3\n');
  expect(files.list('/irq')).toEqual(['23', '24']);
  symlinkSync('net:[1]', `${root}/link`);
  expect(files.link('/link')).toBe('net:[1]');
});

it('of a folder are in order, however it was made', () => {
  const { root, files } = irqFiles();
  const names = Array.from({ length: 30 }, (_, i) => String(99 - i));
  for (const name of names) mkdirSync(`${root}/${name}`);
  expect(files.list('')).toEqual([...names, 'irq'].sort());
});

it('have folders that are made and removed', () => {
  const { files } = irqFiles();
  files.makeFolder('/irq/25');
  expect(files.exists('/irq/25')).toBe(true);
  files.removeFolder('/irq/25');
  expect(files.exists('/irq/25')).toBe(false);
});

it('that are not there are undefined, hold nothing and are not made', () => {
  const { files } = irqFiles();
  for (const path of ['/none', '/irq/24/smp/below']) {
    expect(files.read(path)).toBeUndefined();
    expect(files.list(path)).toEqual([]);
    expect(files.link(path)).toBeUndefined();
    files.removeFolder(path);
    expect(thrownBy(() => files.write(path, '1'))?.code).toMatch(/^ENO/);
    expect(files.exists(path)).toBe(false);
  }
});

it('that are refused throw, but when they are only looked at', () => {
  const { files } = irqFiles();
  expect(thrownBy(() => files.read('/irq'))?.code).toBe('EISDIR');
  expect(visibleFiles(files).read('/irq')).toBeUndefined();
  const closed = () => {
    throw Object.assign(new Error('closed'), { code: 'EACCES' });
  };
  expect(visibleFiles({ ...files, list: closed }).list('/irq')).toEqual([]);
});

it('are writable if they can be written, or made where they are not', () => {
  const { files } = irqFiles();
  expect(files.isWritable('/irq/24/smp')).toBe(true);
  expect(files.isWritable('/irq/24/new')).toBe(true);
  expect(files.isWritable('/none/new')).toBe(false);
});
