#!/usr/bin/env node
// The command's entry. It imports nothing of numalign before it knows that this is the right one.
import { writeSync } from 'node:fs';
import { loadCompiled, refusalHere, version } from './library.js';

/** Prints the version, if that is all that is asked for. False if the program has to do it. */
function printsVersion([, , ...args]: readonly string[]): boolean {
  if (args.length !== 1 || !['-V', '--version', 'version'].includes(args[0]!)) return false;
  try {
    writeSync(1, `${version}\n`);
    return true;
  } catch {
    // The program reports why it cannot write.
    return false;
  }
}

// What the reaper of a command gives: see running/reaper.ts.
const [, , flag, folder] = process.argv;
const refusal = refusalHere();
if (refusal) {
  console.error(`numalign: ${refusal.message} [${refusal.code}]`);
  process.exitCode = 1;
} else if (flag === '--reap') {
  void import('./reap.js').then(({ reap }) => reap(folder!));
} else if (!printsVersion(process.argv)) {
  const isRun = flag === 'run';
  loadCompiled(['./run.cjs', ...(isRun ? [] : ['./shared.cjs', './program.cjs'])]);
  void import('./terminal/start.js').then(({ start }) =>
    start(async () => (isRun ? await import('./run-alone.js') : await import('./program.js')).runProgram),
  );
}
