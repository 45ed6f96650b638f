// Runs the scenarios on other builds of the package: each in a copy of bench/ beside that build's
// dist/, in turns, so that all builds are measured at the same time.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SHARED = ['node_modules', 'scripts', 'package.json', 'build/bench'];

/**
 * Folders of packages as `{ path, label }`. Throws if one has not been built, or if two have the
 * same name.
 */
export function packagesAt(paths) {
  return paths.map((folder, i) => {
    const path = resolve(folder);
    const label = basename(path);
    if (!existsSync(join(path, 'dist/index.js'))) {
      throw new Error(`--package ${folder}: it has no dist/index.js; build it first`);
    }
    if (paths.slice(0, i).some((other) => basename(resolve(other)) === label)) {
      throw new Error(`--package ${folder}: another one is called ${label} too; rename a folder`);
    }
    return { path, label };
  });
}

function treeOf({ path }) {
  const tree = mkdtempSync(join(tmpdir(), 'numalign-bench-tree-'));
  cpSync(join(ROOT, 'bench'), join(tree, 'bench'), { recursive: true });
  mkdirSync(join(tree, 'build'));
  for (const name of SHARED) symlinkSync(join(ROOT, name), join(tree, name));
  for (const name of ['dist', 'dist-test', 'packages']) symlinkSync(join(path, name), join(tree, name));
  return tree;
}

/** The rows of a scenario on a tree; a failed scenario is a row with its code. */
function rowsOn(tree, scenario, args) {
  const json = join(tree, 'rows.json');
  rmSync(json, { force: true });
  const program = ['--expose-gc', join(tree, 'bench/run.mjs'), scenario, ...args, '--json', json];
  const { status, stderr } = spawnSync(process.execPath, program, { encoding: 'utf8' });
  if (!existsSync(json)) return [{ name: scenario, code: 'ERR_SCENARIO', remark: `${status}: ${stderr}` }];
  return JSON.parse(readFileSync(json, 'utf8')).rows;
}

/**
 * Runs scenarios on packages, all packages in turn. Yields `{ scenario, rows }`: `rows` has a list
 * for each package, which has a list for each turn.
 */
export function* onPackages(packages, scenarios, args, turns) {
  const trees = [];
  try {
    for (const each of packages) trees.push(treeOf(each));
    for (const scenario of scenarios) {
      const rows = trees.map(() => []);
      for (let turn = 0; turn < turns; turn++) {
        for (const [i, tree] of trees.entries()) rows[i].push(rowsOn(tree, scenario, args));
      }
      yield { scenario, rows };
    }
  } finally {
    for (const tree of trees) rmSync(tree, { recursive: true });
  }
}
