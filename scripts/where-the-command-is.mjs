#!/usr/bin/env node
// Where the command numalign is, for `npx numalign`. It has another name than the command: npm installs
// no two global packages that both have a program `numalign`.
console.error(`numalign: the command is in the package @numalign/cli:
  npm install --global @numalign/cli
  npx @numalign/cli ${process.argv.slice(2).join(' ') || 'run --cpus 2 -- PROGRAM'}`);
process.exitCode = 1;
