import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // npm run test:package
    exclude: ['test/package/**'],
    // Processes, not threads: affinity belongs to threads, and a test's pin must not outlive its file.
    pool: 'forks',
    testTimeout: 30_000,
  },
});
