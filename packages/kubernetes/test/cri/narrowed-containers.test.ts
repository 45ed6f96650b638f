import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { NarrowedContainers } from '../../lib/cri/narrowed-containers.js';
import { temporaryFolder } from './fake-runtime.js';

const NARROWING = { before: CpuSet.parse('0-3'), after: CpuSet.parse('1,3') };
const folderOf = () => join(temporaryFolder(onTestFinished), 'a/b');

describe('What shared containers had before', () => {
  it('is readable for later processes', () => {
    const folder = folderOf();
    new NarrowedContainers(folder).set('x1', NARROWING);
    const found = new NarrowedContainers(folder).get('x1')!;
    expect([`${found.before}`, `${found.after}`]).toEqual(['0-3', '1,3']);
    expect(new NarrowedContainers(folder).get('x2')).toBeUndefined();
  });

  it('is forgotten with the container', () => {
    const folder = folderOf();
    const narrowed = new NarrowedContainers(folder);
    narrowed.keepOnly(new Set());
    for (const id of ['x1', 'x2', 'x3']) narrowed.set(id, NARROWING);
    narrowed.delete('x1');
    narrowed.delete('x1');
    narrowed.keepOnly(new Set(['x2']));
    expect(readdirSync(folder)).toEqual(['x2.json']);
  });

  it.each(['', '{}', '{"before":"0-3"}', '{"before":"3-0","after":"1"}', 'null', '{"before":1,"after":2}'])(
    'is ignored if its file is %j',
    (text) => {
      const folder = folderOf();
      const narrowed = new NarrowedContainers(folder);
      narrowed.set('x1', NARROWING);
      writeFileSync(join(folder, 'x1.json'), text);
      expect(narrowed.get('x1')).toBeUndefined();
    },
  );

  it.each(['../x', 'a/b', '', '..', `${'x'.repeat(200)}`, 'a\0b'])('has no file for an id of %j', (id) => {
    const narrowed = new NarrowedContainers(folderOf());
    expect(() => narrowed.set(id, NARROWING)).toThrow(TypeError);
    expect(narrowed.get(id)).toBeUndefined();
  });
});
