// Which test files judge the mutants of a folder: those that run its code in their own process.
// Quick ones first.
const tests = (folder, ...names) => names.map((name) => `test/${folder}/${name}.test.ts`);

const DECISIONS = [
  ...tests('input', 'pod-request'),
  ...tests('admission', 'topology-manager', 'proposals'),
  ...tests('decision', 'memory-manager', 'device-manager'),
  ...tests('managers', 'devices'),
  ...tests('conformance', 'divergences'),
  ...tests('kubelet', 'kubelet-exchange'),
  ...tests('admission', 'admit'),
  ...tests('decision', 'isolated-cpus'),
  ...tests('decision/changes', 'repacking'),
  ...tests('machine', 'hint-families'),
  ...tests('admission', 'changed-machine'),
  ...tests('managers', 'kubelet-conflict'),
  ...tests('decision', 'partition'),
];

const ADMISSION = [
  ...DECISIONS,
  ...tests('managers', 'resize', 'manager', 'messages'),
  ...tests('threads', 'memory'),
  ...tests('admission', 'hotplug', 'planner'),
  ...tests('lifecycle', 'dead-owners', 'grant-edges', 'grant-life', 'processes'),
  ...tests('conformance', 'conformance'),
];

const STATE_FORMAT = [
  ...tests('state', 'shapes', 'members', 'state-change', 'owner-file', 'journal-lines', 'owner-files'),
  ...tests('kubelet', 'go-json', 'kubelet-data'),
  ...tests('state', 'difference', 'newer-format', 'recovery-laws', 'unfinished-lines', 'checkpoint'),
  ...tests('kubelet', 'record-kubelet', 'kubelet-format'),
  ...tests('state', 'journal'),
];

const STATE_FILES = [
  ...tests(
    'state',
    'state-files',
    'journal-follower',
    'found-owners',
    'folder-events',
    'owner-locks',
    'owner-files',
    'recovery-laws',
    'unfinished-lines',
  ),
  ...tests('state', 'newer-format', 'full-disk', 'calls-in-a-row', 'long-states'),
  ...tests('status', 'status'),
  ...tests('state', 'delayed-notices', 'folder-watch', 'journal', 'strays', 'file-watch', 'no-inotify'),
];

const STATE_OWNERS = [
  ...tests(
    'state',
    'rebuilt',
    'living-owners',
    'owner-claims',
    'own-file',
    'lock-holder',
    'cgroup-turns',
    'own-owner',
    'owner-files',
    'recovery-laws',
    'unfinished-lines',
  ),
  ...tests('state', 'full-disk', 'calls-in-a-row'),
  ...tests('kubelet', 'record-kubelet'),
  ...tests('lifecycle', 'dead-owners'),
  ...tests(
    'state',
    'strays',
    'owner-watch',
    'owners',
    'owner-ends',
    'restored-folders',
    'recovery',
    'put-back',
  ),
];

const STATE = tests(
  'state',
  'until',
  'state-lock',
  'state-writer',
  'difference',
  'memory-store',
  'read-only-store',
  'ledger',
  'wait-queue',
  'owner-guard',
);

const STATE_OF_PROCESSES = [
  ...tests('state', 'lock', 'open-folders', 'owner-watch', 'machine-group', 'folder-errors'),
  ...tests('state', 'shared-folders', 'open-file-limit'),
  ...tests('processes', 'program-name'),
  ...tests('kubelet', 'kubelet-exchange'),
  ...tests('lifecycle', 'dead-owners', 'processes'),
];

const NRI = ['protocol', 'runtime-state', 'session', 'connect', 'plugin-service', 'plugin'];

export const JUDGES = {
  'lib/decision': ADMISSION,
  'lib/admission': ADMISSION,
  'lib/state/format': STATE_FORMAT,
  'lib/state/files': STATE_FILES,
  'lib/state/folder': tests(
    'state',
    'closed-folders',
    'folder',
    'root-choice',
    'machine-group',
    'open-folders',
    'folder-errors',
  ),
  'lib/state/owners': STATE_OWNERS,
  'lib/state': [
    ...new Set([...STATE, ...STATE_FORMAT, ...STATE_FILES, ...STATE_OF_PROCESSES, ...STATE_OWNERS]),
  ],
  'lib/enforcement': [
    ...tests('enforcement', 'holders', 'grant-group', 'levels', 'overlap', 'quota', 'attach'),
    ...tests('enforcement/layout', 'transition', 'differences'),
    ...tests('enforcement/members', 'shared-members', 'member-masks'),
    ...tests('enforcement', 'hidden', 'users'),
    ...tests('cgroups/groups', 'cpuset-v1'),
    ...tests('cgroups/files', 'made-groups'),
    ...tests('reconcile', 'drift', 'fights'),
    ...tests('decision', 'isolated-cpus'),
    ...tests('admission', 'changed-machine'),
    ...tests('lifecycle', 'dead-owners', 'grant-edges', 'grant-life', 'processes', 'workers'),
    ...['enforcement', 'run'].map((name) => `packages/cli/test/${name}.test.ts`),
  ],
  'lib/cgroups': [
    ...tests('cgroups', 'limits'),
    ...tests('cgroups/files', 'made-groups', 'mounts'),
    ...tests('cgroups/groups', 'cpuset-v1'),
    ...tests('enforcement', 'quota', 'levels', 'attach'),
    ...tests('doctor', 'foreign-cpusets'),
    ...tests('admission', 'diagnostics'),
  ],
  // Without those that change the settings of this kernel: a mutant could leave them so.
  'lib/quiet': [
    ...tests('quiet/kernel', 'cpu-mask', 'cpufreq', 'demands', 'recent', 'kernel-files'),
    ...tests('quiet/cache', 'schemata'),
    ...tests(
      'quiet',
      'record',
      'plan',
      'writing',
      'quieter-of',
      'turns',
      'kernel-work',
      'outcome',
      'refusals',
    ),
    ...tests(
      'quiet/parts',
      'hidden',
      'masks',
      'idle',
      'frequency',
      'packets',
      'workqueues',
      'interrupts',
      'irqbalance',
    ),
    ...tests('quiet/parts', 'coming-and-going'),
    ...tests('quiet/cache', 'cache-part', 'cache-laws', 'cache-crashes'),
    ...tests('quiet', 'crashes'),
  ],
  'lib/cluster': tests('cluster', 'worker-life', 'fork', 'restart', 'respawn', 'kills'),
  'packages/kubernetes/lib/nri': NRI.map((name) => `packages/kubernetes/test/nri/${name}.test.ts`),
};

/** What runs in virtual machines only: files of test/vm/guest. */
export const MACHINE_JUDGES = {
  'lib/enforcement': ['enforcement', 'drift', 'masks'],
  'lib/cgroups': ['cgroups-v2', 'enforcement'],
};
