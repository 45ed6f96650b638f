#!/usr/bin/env node
// The command line's entry: an ES module, of which Node loads each file, and each part of Node that
// it imports, in milliseconds. The rest is CommonJS.
import { start } from './terminal/start.js';

await start(async () => (await import('./program.js')).runProgram);
