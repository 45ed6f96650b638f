// Fails if a source folder has too many files for a reader.
import { readdirSync } from 'node:fs';

const MOST = 15;

const files = ['lib', ...['cli', 'kubernetes', 'metrics'].map((name) => `packages/${name}/lib`)]
  .flatMap((root) => readdirSync(root, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile());
const counts = new Map();
for (const { parentPath } of files) counts.set(parentPath, (counts.get(parentPath) ?? 0) + 1);
for (const [folder, count] of counts) {
  if (count <= MOST) continue;
  console.error(`${folder} has ${count} files, more than ${MOST}: it needs rooms`);
  process.exitCode = 1;
}
