// needs: nothing
// Which virtual machines `.ci/run` boots.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseShapes, concernsOf, MACHINES_OF_ROOMS } from './choice.mjs';
import { SHAPES } from './shapes.mjs';

const filesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
const CONTAINERS = ['lib', 'proto', 'test/containers'].map((folder) => `packages/kubernetes/${folder}`);
const FILES = ['lib', 'native', 'test/vm', ...CONTAINERS].flatMap(filesBelow);
const namesOf = (shapes: readonly { name: string }[]) => shapes.map(({ name }) => name);

describe('the machines that are booted after a change', () => {
  it('are those whose folders it touches', () => {
    const chosen = (...files: string[]) => namesOf(chooseShapes(SHAPES, files, 0, 0));
    expect(chosen('lib/enforcement/enforcer.ts')).toEqual(['4-nodes', 'newer-kernel']);
    expect(chosen('lib/threads/pool.ts', 'lib/decision/devices/device-hints.ts')).toEqual([
      '4-nodes',
      '4-nodes-pci',
      'isolated',
      'sixteen',
    ]);
    expect(chosen('test/vm/guest/doctor.test.mjs')).toEqual(['4-nodes', 'isolated']);
    expect(chosen('README.md', 'test/managers/manager.test.ts')).toEqual([]);
  });

  it('include some of the others, each of them in turn', () => {
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

  it('are the first and some others in turn, if a change concerns too many', () => {
    fc.assert(
      fc.property(fc.nat(1e6), fc.integer({ min: 2, max: 20 }), (turn, most) => {
        const turns = SHAPES.map((_, i) => namesOf(chooseShapes(SHAPES, FILES, turn + i, 2, most)));
        for (const chosen of turns) {
          expect(chosen[0]).toBe(SHAPES[0]!.name);
          expect(chosen).toHaveLength(Math.min(SHAPES.length, most));
        }
        expect(new Set(turns.flat())).toEqual(new Set(namesOf(SHAPES)));
      }),
      { numRuns: 15 },
    );
  });

  it('are known for every file of the package and of the scripts that run the machines', () => {
    expect(FILES.filter((file) => chooseShapes(SHAPES, [file], 0, 0).length === 0)).toEqual([]);
  });

  it('are listed with paths that exist', () => {
    const files = [...FILES, ...filesBelow('docs')];
    const dead = SHAPES.flatMap(concernsOf).filter(
      (concern) => !files.some((file) => file.startsWith(concern)),
    );
    expect(dead).toEqual([]);
  });

  it('are ones that there are, wherever a room names them', () => {
    const named = new Set([...MACHINES_OF_ROOMS.values()].flat());
    expect(namesOf(SHAPES)).toEqual(expect.arrayContaining([...named]));
  });
});
