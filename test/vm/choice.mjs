// The machines that a partial run boots: those that changes concern, and some of the others in
// rotation.
import { spawnSync } from 'node:child_process';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { HOUSES } from '../../rooms.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

// What concerns a machine besides rooms and its own tests, by the beginnings of paths. The first has
// most tests: all of the package concerns it, and so do the scripts that run machines.
const CONCERNS = {
  '4-nodes': ['lib/', 'native/', 'test/vm/', 'docs/recipes.md'],
  containers: ['packages/kubernetes/proto/', 'packages/kubernetes/test/containers/'],
};

const guestTest = (name) => `test/vm/guest/${name}.test.mjs`;

/** The beginnings of paths whose change concerns a machine, besides rooms. */
export function concernsOf({ name, tests, afterReboot = [] }) {
  return [...(CONCERNS[name] ?? []), ...[...tests, ...afterReboot].map(guestTest)];
}

/** The machines that a change of each folder concerns. */
export const MACHINES_OF_ROOMS = new Map(
  Object.entries(HOUSES).flatMap(([house, rooms]) =>
    rooms.map(({ name, machines = [] }) => [posix.join(house, name), machines]),
  ),
);

/**
 * The machines that changed files concern, and `more` of the others, starting at the one that
 * `turn` counts to. If these are more than `most`: the first, and as many of the others as fit,
 * starting at the one that `turn` counts to. In the order in which they are listed.
 *
 * @param {readonly import('./shapes.mjs').Shape[]} shapes
 */
export function chooseShapes(shapes, changedFiles, turn, more, most = shapes.length) {
  const isConcerned = (shape) => {
    const concerns = concernsOf(shape);
    return changedFiles.some(
      (file) =>
        MACHINES_OF_ROOMS.get(posix.dirname(file))?.includes(shape.name) ||
        concerns.some((beginning) => file.startsWith(beginning)),
    );
  };
  const inTurn = partInTurn(
    shapes.filter((shape) => !isConcerned(shape)),
    turn,
    more,
  );
  const [first, ...rest] = shapes.filter((shape) => isConcerned(shape) || inTurn.has(shape));
  const chosen = partInTurn(rest, turn * (most - 1), most - 1).add(first);
  return shapes.filter((shape) => chosen.has(shape));
}

/** `count` of a list, starting at the place that `turn` counts to, and wrapping around. */
function partInTurn(list, turn, count) {
  const begin = list.length === 0 ? 0 : turn % list.length;
  return new Set([...list.slice(begin), ...list.slice(0, begin)].slice(0, count));
}

function git(...args) {
  const { status, stdout, stderr, error } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${error?.message ?? stderr.trim()}`);
  return stdout.trim();
}

/** Files that git knows and that differ from a revision. Throws if git cannot compare them. */
export const changedFiles = (since) =>
  git('diff', '--name-only', '--no-renames', since, '--').split('\n').filter(Boolean);

/** A number that each commit changes, so that machines take turns. */
export const commitCount = () => Number(git('rev-list', '--count', 'HEAD'));
