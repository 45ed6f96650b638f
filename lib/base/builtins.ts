// The parts of Node that take it long to load, loaded where they are first used: most programs that
// import numalign start no Worker and no child.
import { createRequire } from 'node:module';

// From anywhere: bundlers leave no import.meta.url in CommonJS.
const require = createRequire('/');

const crypto = () => require('node:crypto') as typeof import('node:crypto');

/** Of a text in UTF-8, or of bytes; `before`: that of what is in front of them. */
export const crc32 = (bytes: string | Uint8Array, before = 0): number =>
  (require('node:zlib') as typeof import('node:zlib')).crc32(bytes, before);
export const createHash = (algorithm: string) => crypto().createHash(algorithm);
export const randomUUID = () => crypto().randomUUID();
export const childProcess = () => require('node:child_process') as typeof import('node:child_process');
export const workerThreads = () => require('node:worker_threads') as typeof import('node:worker_threads');
