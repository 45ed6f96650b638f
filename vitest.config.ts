import { defineConfig } from 'vitest/config';

const tests = (folder: string, names: string) => `test/${folder}{${names}}.test.ts`;

// What only decides, on simulated machines: it runs beside what uses this machine, and where there
// is one CPU, too.
const DECISIONS = [
  tests('', 'accounts,admit,cpu-set,device-manager,devices,divergences,hint-families,inspect,isolated-cpus'),
  tests(
    '',
    'kubelet-configuration,kubelet-exchange,memory-manager,merge-hints,partition,pod-request,quantity',
  ),
  tests('', 'topology-manager,vm-choice,vm-machines,wire'),
  'test/{audit,doctor}/{account,cpu-mask,foreign-cpusets,interrupts,judge}.test.ts',
  tests('cli/', 'completion,devices,program,text,topology,topology-tree,yaml-text'),
  'test/{cli/picture,conformance}/*.test.ts',
  tests('state/', 'checkpoint,kubelet-format,recovery'),
];

// What uses this machine so little that it runs beside the others, too: in state folders and
// processes of its own.
const VISITS = [
  tests('', 'addon-missing,bench,examples,messages,metrics,readme,reference'),
  tests('cli/', 'hostile-names,plan,state,status,status-watch,svg-file'),
  'test/state/newer-format.test.ts',
];

// What has agents of its own, in state folders of its own, and may meet anybody on the CPUs.
const PROCESSES = [
  tests('', 'manager,managers-*,named-processes'),
  tests('cli/', 'admit,agent,kubelet-folder,run'),
  tests(
    'state/',
    'difference,folder-errors,go-json,lock,owner*,program-name,put-back,recovery-laws,wait-queue',
  ),
  'test/{lifecycle,torture}/*.test.ts',
];

/** One file after the other, however many CPUs there are: what runs beside is another vitest. */
const project = (
  name: string,
  options: { include: string[]; exclude?: string[]; setupFiles?: string[]; isolate?: boolean },
) => ({
  extends: true as const,
  test: { name, fileParallelism: false, ...options },
});
const setupFiles = ['test/support/two-cpus.ts'];

export default defineConfig({
  test: {
    // Processes, not threads: affinity belongs to threads, and a test's pin must not outlive its
    // file.
    pool: 'forks',
    // A test waits for an event until it is there: these end what hangs, and are far from what a
    // busy machine takes.
    testTimeout: 300_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 60_000 } },
    projects: [
      project('decisions', { include: DECISIONS, isolate: false }),
      project('visits', { include: VISITS, setupFiles }),
      project('processes', { include: PROCESSES, setupFiles }),
      // test/package: npm run test:package.
      project('machine', {
        include: ['test/**/*.test.ts'],
        exclude: ['test/package/**', ...DECISIONS, ...VISITS, ...PROCESSES],
        setupFiles,
      }),
    ],
  },
});
