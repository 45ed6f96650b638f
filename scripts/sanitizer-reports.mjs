// sanitizer-reports.mjs FOLDER: prints what sanitizers have reported of the addon into files of a
// folder, and fails if there is anything.
//
// ThreadSanitizer sees calls of the C library by V8, Node and libuv, but not their atomics, nor
// that the kernel gives a file descriptor to one thread only after another has closed it. So it
// reports races there that are none: of PostMessage, of V8's platform, of descriptors that the
// addon gets after libuv. A race counts if the addon makes both accesses. Suppressions of
// ThreadSanitizer cannot say that: they match every frame, and JavaScript calls the addon.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder] = process.argv.slice(2);
/** Frames of the C and C++ libraries, where an access is made for the caller. */
const LIBRARIES = /\((?:libtsan|libstdc\+\+|libc)\.so/;
const FRAME = /^ +#\d+ .*$/gm;

/** The frame of the program that makes an access. */
const accessOf = (stack) => (stack.match(FRAME) ?? []).find((frame) => !LIBRARIES.test(frame)) ?? '';

function isOfAddon(report) {
  if (!/^WARNING: ThreadSanitizer: data race/m.test(report)) return true;
  const accesses = report.split('\n\n').slice(0, 2).map(accessOf);
  return accesses.every((frame) => frame.includes('(numalign.node+'));
}

const reports = readdirSync(folder)
  .flatMap((name) => readFileSync(join(folder, name), 'utf8').split(/^=+$/m))
  .filter((report) => report.trim() && !/^ThreadSanitizer: reported \d+ warnings/m.test(report.trim()));
const counted = reports.filter(isOfAddon);
for (const report of counted) console.log(report);
console.log(
  `sanitizer reports: ${counted.length} of the addon, ${reports.length - counted.length} of others`,
);
process.exitCode = counted.length > 0 ? 1 : 0;
