// needs: nothing
// What was in force earlier, by the lines that the files still have.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { openManager } from '../../lib/index.js';
import { openExisting } from '../../lib/state/folder/existing.js';
import { statesBetween } from '../../lib/state/past-states.js';
import { makeNewer } from '../support/newer-state.js';
import { simulate } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

// Commits have times in milliseconds.
const now = async () => {
  await pause(2);
  const time = Date.now();
  await pause(2);
  return time;
};

/** The names of the grants in each state that was in force. */
function namesBetween(stateDir: string, from: number, to = from): string[] {
  const folder = openExisting(stateDir)!;
  try {
    return [...statesBetween(folder, from, to)].map(({ assignments }) =>
      assignments.pods.map(({ name }) => name).join(' '),
    );
  } finally {
    folder.close();
  }
}

async function scene() {
  const stateDir = makeStateDir();
  const manager = await simulate('numa:1 core:8 pu:1', { stateDir });
  const begin = await now();
  const first = await manager.acquire({ cpu: 1, name: 'first' });
  const one = await now();
  const second = await manager.acquire({ cpu: 1, name: 'second' });
  const two = await now();
  await first.release();
  const left = await now();
  await second.release();
  return { stateDir, manager, begin, one, two, left, end: await now() };
}

it('a time has the state that was in force then', async () => {
  const { stateDir, begin, one, two, left, end } = await scene();
  const each = [begin, one, two, left, end].map((time) => namesBetween(stateDir, time));
  expect(each).toEqual([[''], ['first'], ['first second'], ['second'], ['']]);
});

it('a span has all states that were in force in it, and nothing was before the first', async () => {
  const { stateDir, begin, one, left } = await scene();
  expect(namesBetween(stateDir, one, left)).toEqual(['first', 'first second', 'second']);
  expect(namesBetween(stateDir, 0, begin - 1000)).toEqual([]);
});

it('a state is found after a new file has begun, and once more', async () => {
  const { stateDir, manager, two } = await scene();
  const file = () => statSync(join(stateDir, 'state.json')).ino;
  const first = file();
  while (file() === first) await (await manager.acquire({ cpu: 1 })).release();
  expect(namesBetween(stateDir, two)).toEqual(['first second']);
  const last = await manager.acquire({ cpu: 1, name: 'last' });
  const time = await now();
  await last.release();
  const second = file();
  while (file() === second) await (await manager.acquire({ cpu: 1 })).release();
  expect(namesBetween(stateDir, time)).toEqual(['last']);
  expect(namesBetween(stateDir, two)).toEqual([]);
});

it('lines that are missing say nothing of what was in force', async () => {
  const { stateDir, one, two, left, end } = await scene();
  const file = join(stateDir, 'state.json');
  const lines = readFileSync(file, 'utf8').split('\n');
  const at = lines.findIndex((line) => line.includes('"second"'));
  const rest = [...lines.slice(0, at), ...lines.slice(at + 1)];
  writeFileSync(file, rest.join('\n'));
  expect(namesBetween(stateDir, one - 1)).toEqual([]);
  expect(namesBetween(stateDir, two, end)).toEqual([]);
  writeFileSync(file, lines.with(at, lines[at]!.replace('second', 'third')).join('\n'));
  expect(namesBetween(stateDir, one, left)).toEqual([]);
});

it.each([
  ['damaged', (stateDir: string) => writeFileSync(join(stateDir, 'state.json'), 'no state')],
  ['of a newer version', (stateDir: string) => makeNewer(stateDir, true)],
])('a file that is %s is as if there were none', async (_, spoil) => {
  const { stateDir, begin, end } = await scene();
  spoil(stateDir);
  expect(namesBetween(stateDir, begin, end)).toEqual([]);
});

it('an earlier file that is damaged hides nothing of the later one', async () => {
  const { stateDir, manager, left } = await scene();
  writeFileSync(
    join(stateDir, 'state.earlier.json'),
    '{"format":"numalign-state","version":2}\n{"line":"state"',
  );
  expect(namesBetween(stateDir, left)).toEqual(['second']);
  manager.close();
  const again = await openManager({ topology: manager.topology, stateDir });
  again.close();
});
