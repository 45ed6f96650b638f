// npm run test:package: apart from the others, since packing compiles two addons, and twice a
// consumer's npm installs what was packed.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/package/**/*.test.ts'],
    globalSetup: 'test/package/global-setup.ts',
    // They wait for npm half of the time.
    maxWorkers: '100%',
    testTimeout: 5 * 60_000,
    // Debian's packages for the compilers of prebuilt addons come over the network.
    hookTimeout: 50 * 60_000,
  },
});
