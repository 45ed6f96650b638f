// From the start of `numalign run` to its program's first instruction: the time of a program that
// ends at once, without Node's own start and end, and without the admission.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openManager } from '../dist/index.js';
import { ownTime } from './support/machine-load.mjs';
import { lowerQuartileOf, medianOf, row } from './support/measure.mjs';
import { emptyNow } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  '`numalign run -- true`, beside `node -e 0`; what it takes longer, without opening and acquiring, by CPU time';
export const explanation = `
*Beyond* is the CPU time above that of \`node -e 0\` and of \`openManager\` and \`acquire\` in a process
that has loaded the package. Each start takes back one grant; lower quartile of the rounds, four
starts each.`;

const [CLI, ADMISSION] = ['../packages/cli/dist/main.cjs', 'support/admission-module.mjs'].map((name) =>
  fileURLToPath(new URL(name, import.meta.url)),
);
// The kernel counts the CPU time of a process in hundredths of a second, so this many are one
// sample.
const TOGETHER = 4;

function started(args) {
  const cpu = ownTime();
  const begin = performance.now();
  let stdout;
  for (let i = 0; i < TOGETHER; i++) {
    const ended = spawnSync(process.execPath, args, { encoding: 'utf8' });
    if (ended.status !== 0) throw new Error(`${args.join(' ')} ended with ${ended.status}: ${ended.stderr}`);
    ({ stdout } = ended);
  }
  return {
    ns: ((performance.now() - begin) * 1e6) / TOGETHER,
    cpuNs: (ownTime() - cpu) / TOGETHER,
    stdout,
  };
}

/** A state folder of this machine, with settings on record. */
async function newFolder(parent) {
  const stateDir = mkdtempSync(join(parent, 'numalign-bench-'));
  (await openManager({ stateDir, reservedSystemCPUs: '0' })).close();
  return stateDir;
}

export async function run({ check }) {
  const { path, fileSystem } = stateParents().at(-1);
  const folders = [await newFolder(path), await newFolder(path), await newFolder(path)];
  const line = (stateDir, ...options) => [
    ...[CLI, 'run', ...options, '--cpus', '1', '--silent', '--state-dir', stateDir, '--', 'true'],
  ];
  const subjects = [
    ['numalign run', line(folders[0])],
    ['numalign run --supervise', line(folders[1], '--supervise')],
  ];
  const found = subjects.map(() => ({ samples: [], others: [], beyond: [] }));
  const admissions = [];
  try {
    for (let i = -1; i < (check ? 6 : 12); i++) {
      const emptyNs = emptyNow();
      const plain = started(['-e', '0']);
      const admission = JSON.parse(started([ADMISSION, folders[2]]).stdout);
      const times = subjects.map(([, args]) => started(args));
      if (i < 0) continue;
      admissions.push(admission);
      for (const [at, { ns: took, cpuNs }] of times.entries()) {
        found[at].samples.push(took);
        found[at].others.push(plain.ns);
        const ns = cpuNs - plain.cpuNs - admission.cpuUs * 1000;
        found[at].beyond.push({ ns, e: ns / emptyNs });
      }
    }
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true });
  }
  const admissionMs = (of) => (medianOf(admissions.map(of)) / 1000).toFixed(1);
  return subjects.map(([name], at) => {
    const { beyond, ...times } = found[at];
    const beyondE = lowerQuartileOf(beyond.map(({ e }) => e));
    const more = (medianOf(beyond.map(({ ns }) => ns)) / 1e6).toFixed(1);
    const remark = `CPU time ${more} ms more than both; opening and acquiring: ${admissionMs(({ us }) => us)} ms, CPU time ${admissionMs(({ cpuUs }) => cpuUs)} ms; ${fileSystem}`;
    return row(name, times, { yardstick: '`node -e 0`', beyondE, remark });
  });
}
