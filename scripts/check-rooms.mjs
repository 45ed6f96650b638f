// Holds the source to rooms.mjs: every folder with code is a room on the list, no room has more
// files than a reader can survey, and none outgrows its budget of lines. And the tests that judge
// mutants exist. A budget is against growth, not against a row of a table: a few lines more are a
// note, and no error.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative } from 'node:path';
import { HOUSES, JUDGES, MACHINE_JUDGES } from '../rooms.mjs';

const MOST_FILES = 15;
const TOLERANCE = 1.03;
// Declarations of C++ stand beside their definitions.
const CODE = { '.ts': MOST_FILES, '.cc': undefined, '.h': undefined };

const isCode = (line) => !/^\s*(\/\/|\/?\*|$)/.test(line);
const linesOf = (file) => readFileSync(file, 'utf8').split('\n').filter(isCode).length;

function fail(message) {
  console.error(message);
  process.exitCode = 1;
}

/** Files and lines of code by room. */
function measure(house) {
  const rooms = new Map();
  for (const entry of readdirSync(house, { recursive: true, withFileTypes: true })) {
    const extension = extname(entry.name);
    if (!entry.isFile() || !(extension in CODE)) continue;
    const name = relative(house, entry.parentPath) || '.';
    const size = rooms.get(name) ?? { files: 0, lines: 0, mostFiles: CODE[extension] };
    size.files++;
    size.lines += linesOf(join(entry.parentPath, entry.name));
    rooms.set(name, size);
  }
  return rooms;
}

for (const [house, rooms] of Object.entries(HOUSES)) {
  const sizes = measure(house);
  for (const { name, lines } of rooms) {
    const size = sizes.get(name);
    if (!size) fail(`${house}/${name} is in rooms.mjs and has no code: take it off the list`);
    else if (size.lines > lines) {
      const isError = size.lines >= lines * TOLERANCE;
      const what = `${house}/${name} has ${size.lines} lines of code, and rooms.mjs allows ${lines}`;
      if (isError) fail(`${what}: make it simpler, or raise the budget and say why there`);
      else console.error(`note: ${what}`);
    }
    if (size?.files > size?.mostFiles)
      fail(`${house}/${name} has ${size.files} files, more than ${size.mostFiles}: it needs rooms`);
    sizes.delete(name);
  }
  for (const name of sizes.keys()) fail(`${house}/${name} is not in rooms.mjs: say there what it is for`);
}

const judges = [
  ...Object.values(JUDGES).flat(),
  ...Object.values(MACHINE_JUDGES).flatMap((names) => names.map((name) => `test/vm/guest/${name}.test.mjs`)),
];
for (const folder of [...Object.keys(JUDGES), ...Object.keys(MACHINE_JUDGES)])
  if (!existsSync(folder)) fail(`${folder} has judges of mutants in rooms.mjs, and is no folder`);
for (const file of new Set(judges))
  if (!existsSync(file)) fail(`${file} is a judge of mutants in rooms.mjs, and is no file`);
