// npm run test:shells: apart from the others, since it installs what it needs from Debian.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['packages/cli/test/shells/**/*.test.ts', 'packages/cli/test/man.test.ts'],
    globalSetup: 'packages/cli/test/shells/global-setup.ts',
    testTimeout: 60_000,
    hookTimeout: 10 * 60_000,
  },
});
