// npm run test:containers [-- --test NAME]… Runs *.test.mjs of this folder with a separate
// containerd and runc, out of Debian's packages. Skipped if these are out of reach.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { works } from '../../../../scripts/steps.mjs';
import { describeComponents, prepareComponents } from './components.mjs';
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

function chosenFiles() {
  const { values } = parseArgs({ options: { test: { type: 'string', multiple: true } } });
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(SUFFIX));
  const names = files.map((file) => file.slice(0, -SUFFIX.length));
  const unknown = values.test?.find((name) => !names.includes(name));
  if (unknown !== undefined) refuse(`there is no test ${unknown}; valid: ${names.join(', ')}`);
  return (values.test ?? names).map((name) => join(FOLDER, name + SUFFIX));
}

function checkMachine() {
  if (!['x64', 'arm64'].includes(process.arch))
    skip(`the image is for x86-64 and arm64, not ${process.arch}`);
  if (process.getuid() !== 0) skip('containers need root');
  const flaw = whyNoCpusets();
  if (flaw !== undefined) skip(flaw);
  if (!works('unshare', ['--mount', 'true'])) skip('mount namespaces cannot be made here');
}

function components() {
  try {
    return describeComponents(prepareComponents());
  } catch (error) {
    return skip(`Debian's packages cannot be had, or do not run here: ${error.message}`);
  }
}

const files = chosenFiles();
checkMachine();
console.log(`test:containers: ${components()}`);
const options = ['--test', '--test-reporter=spec', '--test-concurrency=1'];
const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: 'inherit' });
process.exitCode = status ?? 1;
