#!/usr/bin/env node
// The command's entry. It imports nothing of numalign before it knows that this is the right one.
import { refusalHere } from './library.js';

const refusal = refusalHere();
if (refusal) {
  console.error(`numalign: ${refusal.message} [${refusal.code}]`);
  process.exitCode = 1;
} else {
  void import('./terminal/start.js').then(({ start }) =>
    start(async () => (await import('./program.js')).runProgram),
  );
}
