import { defineConfig } from 'vitest/config';
import { builtLibrary } from './test/support/built-library.js';

const tests = (folder: string, names: string) => `test/${folder}/{${names},}.test.ts`;

// What only decides, on simulated machines: it runs beside what uses this machine, and where there
// is one CPU, too.
const DECISIONS = [
  'test/{account,cli/picture,conformance,decision,input,kubelet,vm}/*.test.ts',
  tests('children', 'program-variables,thread-counts'),
  tests('admission', 'admit,admit-all,adopt,excluded-nodes,pod-level,proposals,rejections,topology-manager'),
  tests('machine', 'best-fit,cpu-set,hint-families,housekeeping'),
  tests('managers', 'inspect,placement'),
  tests('pools', 'balance,pool-options'),
  tests('quiet/kernel', 'cpu-mask,cpufreq,demands,kernel-files,recent'),
  tests(
    'quiet/parts',
    'coming-and-going,frequency,hidden,idle,interrupts,irqbalance,masks,packets,workqueues',
  ),
  'test/{audit,doctor}/{account,foreign-cpusets,hardware-facts,interrupts,judge}.test.ts',
  tests('cli', 'completion,devices,movable,program,quiet,text,topology,topology-tree,yaml-text'),
  tests('quiet', 'crashes,kernel-work,outcome,plan,record,refusals,turns,writing'),
  tests(
    'state',
    'cgroup-turns,checkpoint,members,owner-file,state-change,owner-files,rebuilt,recovery,restored-folders,shapes,state-files',
  ),
  'test/{account/moves,quiet/cache}/*.test.ts',
];

// What replaces functions of Node, or evaluates a module again: lib/ must come from vitest.
const MOCKS = [tests('base', 'wire'), tests('cli', 'kubelet-folder'), tests('state', 'owner-locks')];

// What uses this machine so little that it runs beside the others, too: in state folders and
// processes of its own.
const VISITS = [
  'test/{bench,documents}/*.test.ts',
  tests('base', 'addon-missing,loading,without-addon'),
  tests('cli', 'hostile-names,plan,plan-workloads,state,status,status-watch,svg-file'),
  tests('state', 'newer-format'),
];

// What has agents of its own, in state folders of its own, and may meet anybody on the CPUs.
const STATES = [
  'test/{mutants,torture}/*.test.ts',
  tests('processes', 'kubelet-record,named-processes'),
  tests('base', 'layered-map,registry,steps'),
  tests('cli', 'agent,run'),
  tests('elastic', 'elastic-{choices,crowd,grants,laws,waits}'),
  tests('moves', 'move-{failures,grant,listeners,pages}'),
  'test/{addon,repacking}/*.test.ts',
  tests('state', 'difference,file-systems,folder,folder-errors,journal*,open-file-limit,owner-ends,put-back'),
  tests('state', 'recovery-laws,shared-folders,strays,unfinished-lines'),
];

// The same, and it leaves a trace in its process, such as a pin.
const PROCESSES = [
  'test/cluster/*.test.ts',
  tests('admission', 'changed-machine,hotplug'),
  tests('cli', 'admit,run-in-place'),
  tests('managers', 'devices,dispose,listeners,manager,manager-view,messages,optional,resize'),
  tests('managers', 'throwing-listeners'),
  'test/{lifecycle,metrics}/*.test.ts',
  tests('children', 'exec,fork,holding,preload'),
  tests('elastic', 'elastic-{crashes,patience,processes}'),
  tests('moves', 'move-crashes'),
  tests('processes', 'program-name'),
  tests('state', 'calls-in-a-row,delayed-notices,file-watch,folder-watch,full-disk,lock,long-states'),
  tests('state', 'machine-group,open-folders,owner-watch,owners,wait-queue'),
];

/** One file after the other, however many CPUs there are: what runs beside is another vitest. */
const project = (
  name: string,
  options: { include: string[]; exclude?: string[]; setupFiles?: string[]; isolate?: boolean },
) => ({
  extends: true as const,
  plugins: options.include === MOCKS ? [] : [builtLibrary],
  test: { name, fileParallelism: false, ...options },
});
const setupFiles = ['test/support/two-cpus.ts'];
// A process takes a quarter of a second: files that leave no trace in it share one.
const shared = { isolate: false, setupFiles: [...setupFiles, 'test/support/one-process.ts'] };

export default defineConfig({
  test: {
    globalSetup: 'test/support/build.ts',
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
      project('mocks', { include: MOCKS }),
      project('visits', { include: VISITS, setupFiles }),
      project('states', { include: STATES, ...shared }),
      project('processes', { include: PROCESSES, exclude: DECISIONS, setupFiles }),
      // Neither needs two CPUs: they decide, or talk over sockets of their own.
      {
        extends: true,
        test: {
          name: 'kubernetes',
          fileParallelism: false,
          isolate: false,
          setupFiles: ['test/support/one-process.ts'],
          include: ['packages/kubernetes/test/**/*.test.ts'],
        },
      },
      // test/package: npm run test:package.
      project('machine', {
        include: ['test/**/*.test.ts'],
        exclude: ['test/package/**', ...DECISIONS, ...MOCKS, ...VISITS, ...STATES, ...PROCESSES],
        setupFiles,
      }),
    ],
  },
});
