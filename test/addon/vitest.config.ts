// scripts/addon-sanitizers.sh: in a copy of the package that has another addon, so that nothing is
// built first.
import { defineConfig } from 'vitest/config';
import { builtLibrary } from '../support/built-library.js';

export default defineConfig({
  plugins: [builtLibrary],
  test: { include: ['test/**/*.test.ts'], fileParallelism: false, pool: 'forks', testTimeout: 300_000 },
});
