// LatePackages: packages that are loaded at their first use. Not every node needs them, and each takes
// some megabytes of its memory.
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

export const grpc = (): typeof import('@grpc/grpc-js') => require('@grpc/grpc-js');
export const yaml = (): typeof import('yaml') => require('yaml');
