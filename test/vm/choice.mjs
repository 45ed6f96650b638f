// The machines that a partial run boots: those that changes concern, and some of the others in
// rotation.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The beginnings of paths whose change concerns each machine, besides the tests that run in it. The
 * first has most tests: all of the package concerns it, and so do the scripts that run machines.
 */
const CONCERNS = {
  '4-nodes': ['lib/', 'native/', 'test/vm/', 'docs/recipes.md'],
  '4-nodes-pci': [
    ...[
      'lib/input/devices',
      'lib/decision/devices/',
      'lib/machine/machine-description',
      'native/core/device',
      'native/platform/discovery/pci',
    ],
    ...['lib/audit/', 'native/platform/threads/cpu_activity', 'native/platform/threads/task_activity'],
  ],
  '8-nodes': [
    'lib/decision/hints/merge-hints',
    'lib/decision/alignment',
    'lib/decision/place',
    'lib/decision/decision',
    'lib/admission/',
    'lib/moves/',
    'native/core/',
  ],
  '64-cpus': [
    'lib/machine/cpu-set',
    'lib/machine/id-set',
    'lib/decision/cpus/',
    'native/platform/threads/affinity',
  ],
  'cpu-holes': [
    'lib/machine/topology',
    'lib/machine/machine-json',
    'lib/account/cpu-identities',
    'native/platform/discovery/hwloc',
  ],
  'memory-only-node': ['lib/decision/memory/', 'native/core/memory_hints', 'native/platform/memory/'],
  'cpu-only-node': ['lib/decision/memory/', 'native/platform/discovery/hwloc'],
  isolated: [
    ...[
      'lib/threads/',
      'lib/doctor/',
      'lib/machine/isolated-cpus',
      'native/platform/threads/thread',
      'native/platform/threads/scheduling',
    ],
    'native/platform/threads/pool_barrier',
  ],
  containers: [
    ...['lib/', 'proto/', 'test/containers/'].map((folder) => `packages/kubernetes/${folder}`),
    ...['lib/processes/cgroup-owner', 'lib/state/owners/'],
  ],
  'newer-kernel': [
    'lib/cgroups/',
    'lib/enforcement/',
    'lib/reconcile/',
    'native/platform/memory/',
    'native/platform/threads/member_masks',
  ],
  sixteen: ['lib/threads/birth', 'lib/threads/worker', 'lib/pools/', 'native/platform/threads/thread_birth'],
  quiet: ['lib/quiet/', 'lib/account/quiet/', 'lib/reconcile/quiet-settings'],
  'quiet-newest': ['lib/quiet/kernel/', 'lib/quiet/parts/'],
};

const guestTest = (name) => `test/vm/guest/${name}.test.mjs`;

/** The beginnings of paths whose change concerns a machine. */
export function concernsOf({ name, tests, afterReboot = [] }) {
  return [...(CONCERNS[name] ?? []), ...[...tests, ...afterReboot].map(guestTest)];
}

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
    return changedFiles.some((file) => concerns.some((beginning) => file.startsWith(beginning)));
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
