import { defineConfig } from 'vitest/config';

// What only decides, on simulated machines: it may run beside what moves threads and measures time.
const DECISIONS = [
  ...['accounts', 'cpu-set', 'divergences', 'hint-families', 'memory-manager', 'merge-hints', 'partition'].map(
    (name) => `test/${name}.test.ts`,
  ),
  'test/conformance/*.test.ts',
];

export default defineConfig({
  test: {
    // Processes, not threads: affinity belongs to threads, and a test's pin must not outlive its file.
    pool: 'forks',
    testTimeout: 30_000,
    projects: [
      { extends: true, test: { name: 'decisions', include: DECISIONS } },
      // test/package: npm run test:package.
      {
        extends: true,
        test: { name: 'machine', include: ['test/**/*.test.ts'], exclude: ['test/package/**', ...DECISIONS] },
      },
    ],
  },
});
