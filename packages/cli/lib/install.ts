// npm runs this when the package is installed: it keeps compiled code of the command, by the script with
// which numalign keeps its own. The command works without.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

try {
  const library = dirname(createRequire(import.meta.filename).resolve('numalign/package.json'));
  const script = join(library, 'scripts/compile-code.mjs');
  spawnSync(process.execPath, [script, dirname(import.meta.dirname)], { stdio: 'ignore' });
} catch {
  // There is no library yet.
}
