// What test files need of the machine: the first line of each says it.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** In the order of what a test may do to its surroundings. */
export const NEEDS = {
  nothing: 'it decides, on simulated machines: it runs beside what uses this machine',
  modules: 'it replaces functions of Node, or evaluates a module again: lib/ must come from vitest',
  folders:
    'state folders and processes of its own: it uses this machine so little that it runs beside others',
  documents:
    'the same; it runs what documents, benchmarks and the built package hold: npm run test:documents, not npm test',
  agents: 'agents and state folders of its own, which may meet any others on the CPUs',
  restores: 'the same; it restores, moves or damages state folders: npm run test:restores, not npm test',
  process: 'agents, state folders, and a process of its own, in which it leaves a trace such as a pin',
  machine: 'this machine for itself, such as its cgroups and the threads of others',
};

const FIRST_LINE = /^\/\/ needs: (\w+)\n/;

/** The test files below `folders`, without those below `others`, by what they need. */
export function testsByNeed(root, folders, others = []) {
  const files = Object.fromEntries(Object.keys(NEEDS).map((need) => [need, []]));
  for (const folder of folders) {
    for (const name of readdirSync(join(root, folder), { recursive: true }).sort()) {
      if (!name.endsWith('.test.ts')) continue;
      const file = `${folder}/${name}`;
      if (others.some((other) => file.startsWith(`${other}/`))) continue;
      const [, need] = FIRST_LINE.exec(readFileSync(join(root, file), 'utf8')) ?? [];
      if (!Object.hasOwn(files, need ?? '')) {
        const valid = Object.keys(NEEDS).join(', ');
        throw new Error(`the first line of ${file} must be "// needs: WORD"; valid: ${valid}`);
      }
      files[need].push(file);
    }
  }
  return files;
}
