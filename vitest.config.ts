import { defineConfig } from 'vitest/config';

const tests = (folder: string, names: string) => `test/${folder}{${names}}.test.ts`;

// What only decides, on simulated machines, or only looks: it runs beside what moves threads and measures time, and on a
// machine with one CPU too.
const DECISIONS = [
  tests('', 'accounts,admit,cpu-set,device-manager,devices,divergences,hint-families,inspect,isolated-cpus'),
  tests('', 'kubelet-configuration,kubelet-exchange,memory-manager,merge-hints,partition,pod-request,quantity'),
  tests('', 'reference,topology-manager,vm-choice,vm-machines,wire'),
  'test/{audit,doctor}/{account,cpu-mask,foreign-cpusets,interrupts,judge,throttling}.test.ts',
  tests('cli/', 'completion,devices,plan,program,state,svg-file,text,topology,topology-tree,yaml-text'),
  'test/{cli/picture,conformance}/*.test.ts',
  tests('state/', 'checkpoint,kubelet-format,newer-format,recovery'),
];

export default defineConfig({
  test: {
    // Processes, not threads: affinity belongs to threads, and a test's pin must not outlive its file.
    pool: 'forks',
    // Who waits for something does so until it is there: these end what hangs, and are far from what a busy machine takes.
    testTimeout: 300_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      // One file after the other: the machine's files run beside them.
      { extends: true, test: { name: 'decisions', include: DECISIONS, fileParallelism: false } },
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
