import { defineConfig } from 'vitest/config';

// The longest of what only decides, on simulated machines: it may run beside what moves threads and measures time.
const DECISIONS = ['accounts', 'merge-hints', 'partition'].map((name) => `test/${name}.test.ts`);

export default defineConfig({
  test: {
    // Processes, not threads: affinity belongs to threads, and a test's pin must not outlive its file.
    pool: 'forks',
    // Who waits for something does so until it is there: these end what hangs, and are far from what a busy machine takes.
    testTimeout: 300_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      { extends: true, test: { name: 'decisions', include: DECISIONS } },
      // test/package: npm run test:package.
      {
        extends: true,
        test: {
          name: 'machine',
          include: ['test/**/*.test.ts'],
          exclude: ['test/package/**', ...DECISIONS],
          setupFiles: ['test/support/two-cpus.ts'],
          // One file after the other, however many CPUs there are: they move threads to the same ones.
          fileParallelism: false,
        },
      },
    ],
  },
});
