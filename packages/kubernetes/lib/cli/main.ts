#!/usr/bin/env node
// Main: prepares this process for its program.
import { setFlagsFromString } from 'node:v8';

// Of V8, for this process alone. A node starts some containers a minute: compilers that make code of
// what runs often would take 9 MB of memory. A heap that grows slowly is collected before it has 2 MB
// of garbage, and what only the start needs is forgotten soon.
const FLAGS = [
  ...['--no-opt', '--no-maglev', '--no-sparkplug'],
  ...['--optimize-for-size', '--bytecode-old-age=1', '--incremental-marking-hard-trigger=20'],
];

// They are set before the program is loaded, which is much work already.
for (const flag of FLAGS) setFlagsFromString(flag);
await import('./command-line.js');
