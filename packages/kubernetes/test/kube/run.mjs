// npm run test:kube [-- --test NAME]… Runs *.test.mjs of this folder with a kubelet and an API
// server that are built from Debian's source, which takes minutes at first. Skipped if these are
// out of reach.
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { prepareComponents } from '../containers/components.mjs';
import { whyNoCpusets } from '../containers/support/cgroups.mjs';
import { KUBERNETES_VERSION, preparePrograms } from './build.mjs';
import { prepareEtcd } from './etcd.mjs';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const SUFFIX = '.test.mjs';

function chosenFiles() {
  const { values } = parseArgs({ options: { test: { type: 'string', multiple: true } } });
  const files = readdirSync(FOLDER).filter((file) => file.endsWith(SUFFIX));
  const names = files.map((file) => file.slice(0, -SUFFIX.length));
  const unknown = values.test?.find((name) => !names.includes(name));
  if (unknown !== undefined) {
    console.error(`test:kube: there is no test ${unknown}; valid: ${names.join(', ')}`);
    process.exit(2);
  }
  return (values.test ?? names).map((name) => join(FOLDER, name + SUFFIX));
}

// What needs a program imports the module that runs it.
const PROGRAMS = { kubelet: './kubelet.mjs', 'kube-apiserver': './api-server.mjs' };

function neededPrograms(files) {
  const texts = files.map((file) => readFileSync(file, 'utf8'));
  return Object.keys(PROGRAMS).filter((name) => texts.some((text) => text.includes(`'${PROGRAMS[name]}'`)));
}

function prepare(programs) {
  if (process.getuid() !== 0) throw new Error('containers need root');
  const flaw = whyNoCpusets();
  if (flaw !== undefined) throw new Error(flaw);
  prepareComponents();
  preparePrograms(programs);
  if (programs.includes('kube-apiserver')) prepareEtcd();
}

const files = chosenFiles();
const programs = neededPrograms(files);
try {
  prepare(programs);
} catch (error) {
  console.log(`test:kube: skipped: ${error.message}`);
  process.exit(0);
}
console.log(`test:kube: ${programs.join(' and ')} ${KUBERNETES_VERSION}`);
const options = ['--test', '--test-reporter=spec', '--test-concurrency=1'];
const { status } = spawnSync(process.execPath, [...options, ...files], { stdio: 'inherit' });
process.exitCode = status ?? 1;
