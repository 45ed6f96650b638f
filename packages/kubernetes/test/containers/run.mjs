// npm run test:containers [-- --test NAME]… [--containerd RELEASE]… Runs *.test.mjs of this folder
// with a separate containerd and runc, out of Debian's packages: with each release that has NRI, and
// with the newest only a part of the tests, unless all are to run (NUMALIGN_TEST_LONG) or they are
// chosen here. A release that cannot be downloaded is skipped. 2.3 needs programs built from source.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { works } from '../../../../scripts/steps.mjs';
import { isLong } from '../../../../test/support/budget.mjs';
import {
  describeComponents,
  NRI_RELEASES,
  prepareComponents,
  SELF_BUILT,
  UnreachableError,
} from './components.mjs';
import { whyNoCpusets } from './support/cgroups.mjs';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const SUFFIX = '.test.mjs';

function skip(why) {
  console.log(`test:containers: skipped: ${why}`);
  process.exit(0);
}

function refuse(why) {
  console.error(`test:containers: ${why}`);
  process.exit(2);
}

/** What depends most on the runtime. */
const PART = ['nri-birth', 'nri-churn', 'nri-drift', 'nri-restart', 'nri-session', 'nri-update'];

const option = { type: 'string', multiple: true };
const { values } = parseArgs({ options: { test: option, containerd: option } });

function checked(kind, chosen, valid) {
  const unknown = chosen?.find((name) => !valid.includes(name));
  if (unknown !== undefined) refuse(`there is no ${kind} ${unknown}; valid: ${valid.join(', ')}`);
  return chosen;
}

const names = readdirSync(FOLDER)
  .filter((file) => file.endsWith(SUFFIX))
  .map((file) => file.slice(0, -SUFFIX.length));
const chosen = checked('test', values.test, names);
const known = [...NRI_RELEASES, ...SELF_BUILT];
const releases = checked('release of containerd with NRI', values.containerd, known) ?? NRI_RELEASES;

function testsWith(release) {
  if (chosen || values.containerd || isLong || release === NRI_RELEASES[0]) return chosen ?? names;
  return PART;
}

function checkMachine() {
  if (!['x64', 'arm64'].includes(process.arch))
    skip(`the image is for x86-64 and arm64, not ${process.arch}`);
  if (process.getuid() !== 0) skip('containers need root');
  const flaw = whyNoCpusets();
  if (flaw !== undefined) skip(flaw);
  if (!works('unshare', ['--mount', 'true'])) skip('mount namespaces cannot be made here');
}

/** @returns the exit status; null for a release that cannot be downloaded */
function run(release) {
  let components;
  try {
    components = prepareComponents(release);
  } catch (error) {
    if (!(error instanceof UnreachableError)) throw error;
    console.log(`test:containers: containerd ${release}: skipped: ${error.message}`);
    return null;
  }
  console.log(`test:containers: ${describeComponents(components)}`);
  const options = ['--test', '--test-reporter=spec', '--test-concurrency=1'];
  const files = testsWith(release).map((name) => join(FOLDER, name + SUFFIX));
  const env = { ...process.env, NUMALIGN_CONTAINERD: release };
  const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: 'inherit', env });
  return status ?? 1;
}

checkMachine();
process.exitCode = Math.max(0, ...releases.map(run));
