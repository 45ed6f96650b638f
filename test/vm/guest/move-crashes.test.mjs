// Processes that are killed in the middle of a move: 4 nodes of 4 CPUs each, root, cgroup v2. Run by
// node --test.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { CpuSet } from '../../../dist/index.js';
import { isLong } from '../../support/budget.mjs';
import { releaseReally } from '../../support/moves.mjs';
import { shimEnvironment } from '../../torture/shim.mjs';
import * as kernel from './kernel-view.mjs';
import {
  actor,
  assertAt,
  attached,
  FOLDER,
  MI,
  MOVABLE,
  memoryFor,
  move,
  newSettings,
  occupy,
  ROOM,
} from './movers.mjs';
import { open } from './state-folders.mjs';

const MOVES_MODULE = new URL('../../support/moves.mjs', import.meta.url).href;
const ALL_CPUS = CpuSet.from(kernel.online());
const KILLED = { bytes: 4 * MI, rests: true };
const COMMIT = 'fsync state.json';

/** What must hold after a death at any step, after the next change by another process. */
async function assertOnePlace(manager, level, uid, { pid: tenant, home }) {
  await releaseReally(manager, 'asker');
  // The next change opens to others what the last commit of a dead process gave back.
  await (await manager.acquire({ cpu: 1 })).release();
  const grants = manager.grants();
  assert.deepEqual(
    grants.map((grant) => grant.uid),
    uid === undefined ? [] : [uid],
  );
  const held = grants.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
  assert.equal(String(manager.sharedPool()), String(ALL_CPUS.difference(held)));
  if (level === 'partition' && existsSync(FOLDER))
    assert.equal(kernel.read(FOLDER, 'cpuset.cpus'), String(held));
  for (const { cpus, upcoming } of grants) {
    assert.deepEqual([cpus.size, upcoming], [MOVABLE.cpu, null]);
    const [node] = manager.grant(uid).memoryNodes;
    assert.deepEqual(kernel.nodesOf(cpus.toArray()), [node]);
    const other = node === ROOM.node ? home.node : ROOM.node;
    assertAt({ ...KILLED, pid: tenant }, { cpus: String(cpus), node }, other);
  }
  // No memory is lost either.
  const booked = manager.memory().reduce((sum, { reserved }) => sum + reserved, 0);
  assert.equal(booked, grants.length * memoryFor(KILLED.bytes));
}

const placeOf = ({ cpus, memoryNodes }) => ({ cpus: String(cpus), node: memoryNodes.first });

/**
 * A persistent grant with a process; the killed process moves it. Returns how the killed one gets
 * ready.
 */
async function askers(settings, manager, request) {
  const { uid, pid } = await attached(manager, request, KILLED);
  return async (victim) => {
    await victim.open(settings);
    const ask = (to) =>
      victim.do(
        async ({ importModule }, { manager: opened }, moves, id, place) => {
          const { moveReally } = await importModule(moves);
          await moveReally(opened, id, place, { for: 'asker' });
        },
        MOVES_MODULE,
        uid,
        to,
      );
    return { uid, pid, remaining: uid, ask };
  };
}

/** The killed process owns the grant, which this process asks to move. */
const owners = (settings, manager, request) => async (victim) => {
  await victim.open(settings);
  const uid = await occupy(victim, request, KILLED);
  return { uid, pid: victim.pid, remaining: undefined, ask: (to) => move(manager, uid, to) };
};

/** Its steps in a file of the shim, without those that change nothing. */
const stepsIn = (path) =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line && JSON.parse(line).op !== 'close').length
    : 0;

// `commits`: which of its commits belong to a move, as the first of its life or after others.
const KILLS = [
  {
    role: 'the process that asks',
    prepare: askers,
    where: 'state folder',
    level: 'partition',
    commits: [1, 3],
  },
  { role: 'the owner', prepare: owners, where: 'state folder', level: 'members', commits: [2, 3] },
  { role: 'the process that asks', prepare: askers, where: 'cgroups', level: 'partition' },
  { role: 'the process that asks', prepare: askers, where: 'state folder', level: 'members' },
  { role: 'the owner', prepare: owners, where: 'state folder', level: 'partition' },
];

describe('a move', () => {
  for (const { role, prepare, where, level, commits } of KILLS) {
    // Just after each commit; in a long run after each step.
    const skip = !isLong && !commits && 'of a long run';
    it(`of the level ${level} is completely done or undone if ${role} is killed at a step on the ${where}`, {
      skip,
    }, async (t) => {
      const settings = newSettings();
      const manager = await open(settings);
      const folder = where === 'cgroups' ? FOLDER : settings.stateDir;
      const ready = await prepare(settings, manager, {
        ...MOVABLE,
        memory: memoryFor(KILLED.bytes),
        enforcement: level,
      });
      let home;
      // Returns whether it has died in the move; undefined if it died before.
      async function kill(victim, begun = () => {}) {
        const scene = await ready(victim).catch(() => undefined);
        if (!scene) return undefined;
        const at = placeOf(manager.grant(scene.uid));
        if (at.node !== ROOM.node) home = at;
        begun();
        await scene.ask(at.node === ROOM.node ? home : ROOM).catch(() => {});
        const hasDied = await victim.endsWithin(2_000);
        await assertOnePlace(manager, level, hasDied ? scene.remaining : scene.uid, { ...scene, home });
        await victim.kill();
        return hasDied;
      }
      const victimWith = (shim) => actor(shimEnvironment({ folder, ...shim }));
      let [first, last] = commits ?? [];
      if (isLong) {
        const trace = join(settings.stateDir, '..', `steps of ${role} on ${where} of ${level}`);
        await kill(victimWith({ trace }), () => (first = stepsIn(trace) + 1));
        last = Infinity;
      }
      const victimAt = (nth) =>
        victimWith({ fail: { nth, when: 'after', ...(!isLong && { kind: COMMIT }) } });
      let deaths = 0;
      let next = victimAt(first);
      for (let nth = first; nth <= last; nth++) {
        const victim = next;
        // It starts meanwhile.
        if (nth < last) next = victimAt(nth + 1);
        const hasDied = await kill(victim);
        // Steps that fail are in no trace: some of them come before the move.
        if (hasDied === false) break;
        if (hasDied) deaths++;
      }
      t.diagnostic(`killed ${deaths} times`);
      if (isLong) assert.ok(deaths > 3);
      else assert.equal(deaths, last - first + 1);
      for (const { uid } of manager.grants()) await manager.release(uid);
    });
  }
});
