#!/usr/bin/env node
// The command line's entry, an ES module. Node takes milliseconds for each file and builtin that an
// ES module imports, so all other files are CommonJS.
import { start } from './terminal/start.js';

await start(async () => (await import('./program.js')).runProgram);
