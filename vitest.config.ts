import { defineConfig } from 'vitest/config';
import { builtLibrary } from './test/support/built-library.js';
import { testsByNeed } from './test/support/needs.mjs';

// Elsewhere: npm run test:package, test:shells and test:page.
const folders = ['test', ...['claims', 'cli', 'metrics', 'page'].map((name) => `packages/${name}/test`)];
const others = ['test/package', 'packages/cli/test/shells', 'packages/page/test/browser'];
const needing = testsByNeed(import.meta.dirname, folders, others);

/** One file after the other, however many CPUs there are: what runs beside is another vitest. */
const project = (name: string, options: { include: string[]; setupFiles?: string[]; isolate?: boolean }) => ({
  extends: true as const,
  // Node loads what is built, as it does for programs.
  test: { name, fileParallelism: false, server: { deps: { external: [/\/dist-test\//] } }, ...options },
});
/** With lib/ as it is built. */
const onLibrary = (need: keyof typeof needing, options: { setupFiles?: string[]; isolate?: boolean }) => ({
  ...project(need, { include: needing[need], ...options }),
  plugins: [builtLibrary],
});
const setupFiles = ['test/support/two-cpus.ts'];
// A process takes a quarter of a second: files that leave no trace in it share one.
const oneProcess = 'test/support/one-process.ts';

export default defineConfig({
  test: {
    globalSetup: 'test/support/build.ts',
    // Processes, not threads: affinity belongs to threads, and a test's pin must not outlive its
    // file.
    pool: 'forks',
    // A test waits for an event until it is there: these end what hangs, and are far from what a
    // busy machine takes.
    testTimeout: 300_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      onLibrary('nothing', { isolate: false }),
      project('modules', { include: needing.modules }),
      onLibrary('folders', { isolate: false, setupFiles: [...setupFiles, oneProcess] }),
      onLibrary('documents', { setupFiles }),
      onLibrary('agents', { isolate: false, setupFiles: [...setupFiles, oneProcess] }),
      onLibrary('restores', { isolate: false, setupFiles: [...setupFiles, oneProcess] }),
      onLibrary('process', { setupFiles }),
      onLibrary('machine', { setupFiles }),
      // Neither needs two CPUs: they decide, or talk over sockets of their own.
      project('kubernetes', {
        include: ['packages/kubernetes/test/**/*.test.ts'],
        isolate: false,
        setupFiles: [oneProcess],
      }),
    ],
  },
});
