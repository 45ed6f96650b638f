// `npm run conformance -- FILE…`: replays recorded cases through the package as a user gets it.
import { resolve } from 'node:path';
import type { Numalign } from './case.js';
import { main } from './replay.js';
import { watch } from './watchdog.js';

const LONGEST_CASE_SECONDS = 60;

// The package by its own name, which is dist. Not literals, so that types are checked before anything
// is built.
const entries = ['numalign', 'numalign/topology', 'numalign/kubelet', 'numalign/diagnostics'];
const modules = await Promise.all(entries.map((name) => import(name)));
const numalign: Numalign = Object.assign({}, ...modules);

// npm runs this in the package's folder; the files were named from where the user stands.
const from = process.env.INIT_CWD ?? process.cwd();
const words = process.argv.slice(2).map((word) => (word.startsWith('-') ? word : resolve(from, word)));
process.exitCode = await main(words, numalign, console.log, console.error, watch(LONGEST_CASE_SECONDS));
