// The shim: compiled once, and how a process is started with it.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('shim.c', import.meta.url));
const FOLDER = fileURLToPath(new URL('../../build/torture/', import.meta.url));
const LIBRARY = `${FOLDER}shim.so`;

/** The path of the compiled library. Compiles it if the source is newer. */
export function shimLibrary() {
  if (existsSync(LIBRARY) && statSync(LIBRARY).mtimeMs > statSync(SOURCE).mtimeMs) return LIBRARY;
  mkdirSync(FOLDER, { recursive: true });
  // Two processes that start at once both compile; each puts a whole library in place.
  const own = `${LIBRARY}.${process.pid}`;
  const flags = ['-shared', '-fPIC', '-O1', '-g', '-std=gnu11', '-Wall', '-Wextra', '-Werror'];
  execFileSync('cc', [...flags, '-o', own, SOURCE, '-ldl', '-pthread'], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  renameSync(own, LIBRARY);
  return LIBRARY;
}

/**
 * Environment variables for a process with the shim. `folder`: the state folder, without links.
 * `fail`: { nth, when, kind? }; `random`: { seed, rate }; `errors`: { seed, rate, path?, calm? };
 * `log`, `trace`, `bootId`: files.
 */
export function shimEnvironment({ folder, fail, random, errors, log, trace, bootId }) {
  const variables = {
    LD_PRELOAD: shimLibrary(),
    NUMALIGN_SHIM_FOLDER: folder,
    NUMALIGN_SHIM_FAIL: fail && [fail.nth, fail.when, ...(fail.kind ? [fail.kind] : [])].join(':'),
    NUMALIGN_SHIM_RANDOM: random && `${random.seed}:${random.rate}`,
    NUMALIGN_SHIM_ERRORS:
      errors && [errors.seed, errors.rate, ...(errors.path ? [errors.path] : [])].join(':'),
    NUMALIGN_SHIM_CALM: errors?.calm,
    NUMALIGN_SHIM_LOG: log,
    NUMALIGN_SHIM_TRACE: trace,
    NUMALIGN_SHIM_BOOT_ID: bootId,
  };
  return Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== undefined));
}
