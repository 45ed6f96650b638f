// Which virtual machines `.ci/run` boots.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseShapes, concernsOf } from './vm/choice.mjs';
import { SHAPES } from './vm/shapes.mjs';

const filesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
const FILES = ['lib', 'native', 'test/vm'].flatMap(filesBelow);
const namesOf = (shapes: readonly { name: string }[]) => shapes.map(({ name }) => name);

describe('the machines that are booted after a change', () => {
  it('are those whose folders it touches', () => {
    const chosen = (...files: string[]) => namesOf(chooseShapes(SHAPES, files, 0, 0));
    expect(chosen('lib/enforcement/enforcer.ts')).toEqual(['4-nodes', 'newer-kernel']);
    expect(chosen('lib/threads/pool.ts', 'lib/devices.ts')).toEqual(['4-nodes-pci', 'isolated']);
    expect(chosen('test/vm/guest/doctor.test.mjs')).toEqual(['isolated']);
    expect(chosen('README.md', 'lib/cli/run.ts')).toEqual([]);
  });

  it('are some of the others too, and each of them in its turn', () => {
    const changes = fc.subarray(FILES, { maxLength: 3 });
    fc.assert(
      fc.property(changes, fc.nat(1e6), fc.integer({ min: 1, max: 3 }), (files, turn, more) => {
        const concerned = namesOf(chooseShapes(SHAPES, files, turn, 0));
        const turns = SHAPES.map((_, i) => namesOf(chooseShapes(SHAPES, files, turn + i, more)));
        for (const chosen of turns) {
          expect(chosen).toEqual(expect.arrayContaining(concerned));
          expect(chosen).toHaveLength(Math.min(SHAPES.length, concerned.length + more));
        }
        expect(new Set(turns.flat())).toEqual(new Set(namesOf(SHAPES)));
      }),
    );
  });

  it('are known for every folder of lib but the command line, and for the core and the platform', () => {
    const folders = readdirSync('lib', { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const paths = folders.map(({ name }) => `lib/${name}`).filter((path) => path !== 'lib/cli');
    for (const path of [...paths, 'native/core', 'native/platform']) {
      const chosen = chooseShapes(SHAPES, filesBelow(path), 0, 0);
      expect([path, chosen.length > 0]).toEqual([path, true]);
    }
  });

  it('are concerned by files that exist', () => {
    const dead = SHAPES.flatMap(concernsOf).filter((concern) => !FILES.some((file) => file.startsWith(concern)));
    expect(dead).toEqual([]);
  });
});
