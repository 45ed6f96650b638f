// A limit on the size of files, which the kernel holds this process to (setrlimit(2)): from then on
// nothing can be appended to a state, as on a full disk.
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';

// The kernel sends it where the limit is met. Without a handler the process would end.
const ignore = () => {};

const setLimit = (bytes: string) =>
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`]);

/**
 * Commits to a state fail from now on. Returns a function that ends this. `bytes`: the limit of
 * files, by default the size of the state.
 */
export function breakCommits(
  stateDir: string,
  bytes = statSync(join(stateDir, 'state.json')).size,
): () => void {
  process.on('SIGXFSZ', ignore);
  setLimit(String(bytes));
  return () => {
    setLimit('unlimited');
    process.off('SIGXFSZ', ignore);
  };
}
