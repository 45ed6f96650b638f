#!/usr/bin/env node
// The command's entry. It loads the rest once it can tell what goes wrong with that.
import { start } from './terminal/start.js';

await start(async () => (await import('./program.js')).runProgram);
