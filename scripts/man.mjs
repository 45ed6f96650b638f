// Writes the man pages of the command line to packages/cli/dist/man, from the package that is built.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { commandLine } from './reference/built.mjs';
import { manPages } from './reference/man.mjs';
import { root } from './steps.mjs';

/** The same for the same source: as SOURCE_DATE_EPOCH says, else the newest commit. */
function dateOfSource() {
  const { SOURCE_DATE_EPOCH: epoch } = process.env;
  const { stdout } = spawnSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' });
  const seconds = epoch || stdout?.trim();
  return new Date(seconds ? Number(seconds) * 1000 : Date.now()).toISOString().slice(0, 10);
}

const { MACHINE_STATE_DIR: stateDir } = await import('../dist/index.js');
const { createProgram } = await commandLine();
const program = createProgram();
const folder = join(root, 'packages/cli/dist/man');
mkdirSync(folder, { recursive: true });
const pages = manPages(program, { version: program.version(), date: dateOfSource(), stateDir });
for (const [name, text] of Object.entries(pages)) writeFileSync(join(folder, name), text);
