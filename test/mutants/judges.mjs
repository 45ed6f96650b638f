// Which test files judge the mutants of a folder: those that run its code in their own process.
// Quick ones first.
const tests = (folder, ...names) => names.map((name) => `test/${folder}${name}.test.ts`);

const DECISIONS = [
  ...tests(
    '',
    'pod-request',
    'topology-manager',
    'memory-manager',
    'device-manager',
    'managers-devices',
    'divergences',
    'kubelet-exchange',
  ),
  ...tests('', 'admit', 'isolated-cpus', 'hint-families', 'changed-machine', 'kubelet-conflict', 'partition'),
];

const ADMISSION = [
  ...DECISIONS,
  ...tests('', 'managers-resize', 'manager', 'messages', 'memory', 'hotplug'),
  ...tests('lifecycle/', 'dead-owners', 'grant-edges', 'grant-life', 'processes'),
  ...tests('conformance/', 'conformance'),
];

export const JUDGES = {
  'lib/decision': ADMISSION,
  'lib/admission': ADMISSION,
  'lib/state': [
    ...tests('', 'topology-manager', 'device-manager'),
    ...tests(
      'state/',
      'program-name',
      'difference',
      'checkpoint',
      'kubelet-format',
      'newer-format',
      'go-json',
      'wait-queue',
      'owner-watch',
      'lock',
      'machine-group',
      'owners',
    ),
    ...tests('state/', 'recovery-laws', 'recovery', 'folder-errors', 'put-back'),
    ...tests('', 'changed-machine', 'kubelet-exchange'),
    ...tests('enforcement/', 'shared-members'),
    ...tests('lifecycle/', 'dead-owners', 'grant-edges', 'grant-life', 'processes'),
  ],
  'lib/enforcement': [
    ...tests(
      'enforcement/',
      'holders',
      'grant-group',
      'levels',
      'overlap',
      'quota',
      'attach',
      'shared-members',
    ),
    ...tests('enforcement/', 'hidden', 'users'),
    ...tests('cgroups/', 'cpuset-v1', 'made-groups'),
    ...tests('reconcile/', 'drift', 'fights'),
    ...tests('', 'isolated-cpus', 'changed-machine'),
    ...tests('lifecycle/', 'dead-owners', 'grant-edges', 'grant-life', 'processes', 'workers'),
    ...tests('cli/', 'enforcement', 'run'),
  ],
  'lib/cgroups': [
    ...tests('cgroups/', 'limits', 'made-groups', 'mounts', 'cpuset-v1'),
    ...tests('enforcement/', 'quota', 'levels', 'attach'),
    ...tests('doctor/', 'foreign-cpusets'),
    ...tests('', 'diagnostics'),
  ],
};

/** What runs in virtual machines only: files of test/vm/guest. */
export const MACHINE_JUDGES = {
  'lib/enforcement': ['enforcement', 'drift', 'masks'],
  'lib/cgroups': ['cgroups-v2', 'enforcement'],
};
