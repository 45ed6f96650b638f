// npm run test:page: apart from the others, since it needs Debian's chromium, and time.
import { defineConfig } from 'vitest/config';
import { builtLibrary } from '../../../../test/support/built-library.js';

export default defineConfig({
  plugins: [builtLibrary],
  test: {
    include: ['packages/page/test/browser/*.test.ts'],
    server: { deps: { external: [/\/dist-test\//] } },
    pool: 'forks',
    fileParallelism: false,
    testTimeout: 60_000,
    expect: { poll: { timeout: 20_000, interval: 50 } },
  },
});
