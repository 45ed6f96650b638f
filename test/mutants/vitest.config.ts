// The judges of one folder, for Stryker: its runner asks for threads, but affinity and pids want
// processes.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import { builtLibrary } from '../support/built-library.js';

const judges: string[] = JSON.parse(process.env.NUMALIGN_MUTANTS_JUDGES ?? '[]');

// In the order of the list, which has the quick ones first: the first failure ends a mutant's run.
class AsListed extends BaseSequencer {
  override async sort(files: Parameters<BaseSequencer['sort']>[0]) {
    const rank = ({ moduleId }: { moduleId: string }) =>
      judges.findIndex((judge) => moduleId.endsWith(`/${judge}`));
    return [...files].sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  root: fileURLToPath(new URL('../..', import.meta.url)),
  plugins: [
    // One package beside what the cluster of Node requires, which is built.
    ...(judges.some((judge) => judge.startsWith('test/cluster/')) ? [builtLibrary] : []),
    {
      name: 'processes',
      configureVitest: ({ project }) => {
        project.config.pool = 'forks';
      },
    },
  ],
  test: {
    include: judges,
    setupFiles: ['test/mutants/unfit.ts', 'test/mutants/children.ts'],
    fileParallelism: false,
    sequence: { sequencer: AsListed },
    // A machine that is busy must not pass for a killed mutant. What waits in vain is judged again
    // in another way, see typescript.mjs.
    retry: { count: 1, condition: /^(?!.*timed out)/s },
    testTimeout: 30_000,
    hookTimeout: 30_000,
    expect: { poll: { timeout: 10_000 } },
  },
});
