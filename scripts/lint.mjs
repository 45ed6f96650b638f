// What `npm run lint` checks: each step, whatever the steps before it find. Their names are in the PATH
// that npm sets.
import { spawnSync } from 'node:child_process';
import { fail, root } from './steps.mjs';

const cruise = (folder, configuration) => ['depcruise', folder, '--config', configuration];
const STEPS = [
  ['biome', 'check', '.'],
  cruise('lib', '.dependency-cruiser.mjs'),
  ...['page', 'claims', 'cli', 'metrics', 'kubernetes'].map((name) =>
    cruise(`packages/${name}/lib`, `packages/${name}/.dependency-cruiser.mjs`),
  ),
  ['node', 'scripts/check-rooms.mjs'],
  ['sh', 'scripts/format-cpp.sh', '--check'],
];

const failed = STEPS.filter(
  ([command, ...args]) => spawnSync(command, args, { cwd: root, stdio: 'inherit' }).status !== 0,
);
if (failed.length > 0) fail(`these fail: ${failed.map((step) => step.join(' ')).join(', ')}`);
