import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FolderWatch } from '../../lib/base/folder-watch.js';

let root: string;
let watch: FolderWatch | undefined;
let names: (string | null)[];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'numalign-watch-'));
  names = [];
});

afterEach(() => {
  watch?.close();
  rmSync(root, { recursive: true, force: true });
});

function follow(folder: string): void {
  watch = new FolderWatch({
    folder,
    changed: (name) => names.push(name),
    failed: (error) => {
      throw error;
    },
  });
  watch.start();
}

const seen = (name: string | null) => expect.poll(() => names).toContain(name);

describe('A watch of a folder', () => {
  it('reports the names of files that come and go', async () => {
    follow(root);
    writeFileSync(join(root, 'beside'), '');
    renameSync(join(root, 'beside'), join(root, 'file'));
    await seen('file');
    names = [];
    rmSync(join(root, 'file'));
    await seen('file');
  });

  it('begins once the folder and its ancestors are made', async () => {
    const folder = join(root, 'a/b');
    follow(folder);
    mkdirSync(join(root, 'a'));
    mkdirSync(folder);
    await seen(null);
    writeFileSync(join(folder, 'file'), '');
    await seen('file');
  });

  it('continues in a folder that replaces the removed one', async () => {
    const folder = join(root, 'a/b');
    mkdirSync(folder, { recursive: true });
    follow(folder);
    rmSync(join(root, 'a'), { recursive: true });
    await seen(null);
    names = [];
    mkdirSync(folder, { recursive: true });
    await seen(null);
    writeFileSync(join(folder, 'file'), '');
    await seen('file');
  });

  it('reports no files beside the folder it waits for', async () => {
    const folder = join(root, 'a');
    follow(folder);
    writeFileSync(join(root, 'other'), '');
    mkdirSync(folder);
    await seen(null);
    expect(names).toEqual([null]);
  });

  it('reports nothing once it is closed', async () => {
    follow(root);
    watch!.close();
    writeFileSync(join(root, 'file'), '');
    // The first watch would have got the notices of a second one before.
    const second: (string | null)[] = [];
    const other = new FolderWatch({ folder: root, changed: (name) => second.push(name), failed: () => {} });
    other.start();
    writeFileSync(join(root, 'later'), '');
    await expect.poll(() => second).toContain('later');
    other.close();
    expect(names).toEqual([]);
  });
});
