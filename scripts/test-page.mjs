// Runs the tests of packages/page in a real browser: Debian's chromium, which root installs.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { aptCommand, fail, installPackages, root, works } from './steps.mjs';

const PACKAGES = [
  { name: 'chromium', present: () => works('chromium', ['--version']) },
  { name: 'fonts-dejavu-core', present: () => existsSync('/usr/share/fonts/truetype/dejavu') },
];

const missing = installPackages(PACKAGES);
if (missing.length > 0) fail(`please install what is missing, as root: ${aptCommand(missing)}`);
const vitest = [
  'node_modules/vitest/vitest.mjs',
  'run',
  '--config',
  'packages/page/test/browser/vitest.config.ts',
];
const { status } = spawnSync(process.execPath, [...vitest, ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
