#!/usr/bin/env node
// Main: prepares this process for its program.
import { setFlagsFromString } from 'node:v8';

// Its code runs too seldom for V8's optimizing compiler, which takes 4 MB of memory, and more CPU time
// than it saves. It would already optimize what loads the program.
setFlagsFromString('--no-opt');
await import('./command-line.js');
