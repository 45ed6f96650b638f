// npm run test:nodes [-- --node LINE]... [FILE...]: the newest Node of each line runs the tests
// that touch the machine, and the main job of the package as npm installs it. Each Node comes from
// npm, in the package node-linux-ARCH. Packing compiles the prebuilt addons if something has
// changed, which needs root on a Debian.
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { cacheFolder } from './cache-folder.mjs';
import { runVitest } from './run-vitest.mjs';
import { run, say } from './steps.mjs';

const LINES = ['22', '24', '26'];
const FILES = [
  ...['test/machine/affinity.test.ts', 'packages/metrics', 'test/threads', 'test/pools'],
  ...['test/lifecycle', 'test/state', 'test/enforcement', 'test/audit'],
];

const { values, positionals } = parseArgs({
  options: { node: { type: 'string', multiple: true } },
  allowPositionals: true,
});
const lines = values.node ?? LINES;
const files = positionals.length > 0 ? positionals : FILES;
const npm = (args, options) => run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], options);

/** The path of the newest binary of a line, such as 22, or of an exact version. */
function installNode(line) {
  const name = `node-linux-${process.arch}`;
  const folder = join(cacheFolder('numalign-nodes'), line);
  mkdirSync(folder, { recursive: true });
  npm(['install', '--prefix', folder, '--no-save', '--ignore-scripts', `${name}@${line}`]);
  return join(folder, 'node_modules', name, 'bin/node');
}

/** Installs the package as npm does, in an otherwise empty project. */
function installPackage(folder) {
  run('npm', ['run', '--silent', 'prebuild']);
  const [{ filename }] = JSON.parse(
    run('npm', ['pack', '--json', '--foreground-scripts=false', '--pack-destination', folder]),
  );
  npm(['install', '--prefix', folder, join(folder, filename)], { cwd: folder });
  copyFileSync(join(folder, 'node_modules/numalign/examples/main-job.mjs'), join(folder, 'main-job.mjs'));
}

function mainJob(node, folder) {
  const { status, stdout, stderr } = spawnSync(node, ['main-job.mjs'], { cwd: folder, encoding: 'utf8' });
  return status === 0 ? [] : [`the main job ended with ${status}\n${stdout}${stderr}`];
}

const folder = mkdtempSync(join(tmpdir(), 'numalign-nodes-'));
const rows = [];
const failures = [];
try {
  say('packing and installing the package');
  installPackage(folder);
  for (const line of lines) {
    const node = installNode(line);
    const version = run(node, ['-p', 'process.versions.node']).trim();
    say(`Node ${version}`);
    const job = mainJob(node, folder);
    // It comes first, so that programs that look for `node` find this one.
    const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env.PATH}` };
    const tests = await runVitest(`node-${line}`, files, { node, env });
    failures.push(...[...job, ...tests.failures].map((failure) => `Node ${version}: ${failure}`));
    rows.push([version, job.length === 0 ? 'done' : 'failed', tests.passed, tests.failed, tests.skipped]);
  }
} finally {
  rmSync(folder, { recursive: true });
}

for (const failure of failures) console.log(`\nFAILED ${failure}`);
console.log();
for (const row of [['Node', 'main job', 'passed', 'failed', 'skipped'], ...rows]) {
  console.log(
    row
      .map((cell) => String(cell).padEnd(10))
      .join('')
      .trimEnd(),
  );
}
process.exitCode = rows.some(([, job, , failed]) => job !== 'done' || failed > 0) ? 1 : 0;
