// The rooms of lib/ and the one order in which they may import each other: each only those before
// it. `npm run lint` holds the code against it.
const ROOMS = [
  'base/collections',
  'base/text',
  'base/codes',
  'base',
  'base/notices',
  'machine',
  'account/quiet',
  'account',
  'account/moves',
  'input/values',
  'input/pods',
  'input',
  'decision/hints',
  'decision/pod-level',
  'decision/devices',
  'decision/memory',
  'decision/cpus',
  'decision/joint',
  'decision/lookahead',
  'decision/elastic',
  'decision/flags',
  'decision',
  'decision/repacking',
  'decision/elastic-grants',
  'cgroups/files',
  'cgroups/groups',
  'cgroups',
  'processes',
  'state/format',
  'state/files',
  'state/folder',
  'state/owners',
  'state',
  'enforcement/members',
  'enforcement/layout',
  'enforcement/cpusets',
  'enforcement',
  'threads',
  'pools',
  'children',
  'quiet/kernel',
  'quiet/resctrl',
  'quiet/parts',
  'quiet',
  'admission',
  'admission/planning',
  'admission/grants',
  'moves',
  'elastic',
  'repacking',
  'adoption',
  'kubelet',
  'kubelet/record',
  'audit',
  'reconcile',
  'status',
  'opening',
  'grants',
  'managers',
  '.',
  'cluster',
  'doctor',
  'entries',
  'metrics/sinks',
  'metrics/grants',
  'metrics',
  'cli/terminal',
  'cli/arguments',
  'cli/pages',
  'cli/pages/status',
  'cli/picture',
  'cli/completion',
  'cli/agent',
  'cli/systemd',
  'cli/commands',
  'cli/commands/service',
  'cli',
];

/** The files of a room, without those of the rooms in it. */
const filesOf = (room) => (room === '.' ? '^lib/[^/]+$' : `^lib/${room}/[^/]+$`);

// Decisions and accounts are functions of what they are given: they import nothing that reads the
// machine, the clock or files, nor what starts something.
const PURE = '^lib/(account|decision)/';
// Of Node they use what looks at values only.
const NODE_OF_VALUES = '^(node:)?util$';
const MACHINE_READERS = 'affinity|discovery|hugepages|isolated-cpus|online-cpus|topology-refresh';
const READERS = `^lib/(base/(text/text-of|native-(files|threads))|machine/(${MACHINE_READERS}))[.]ts$`;
// Reads what accounts and decisions are given.
const GIVER = '^lib/account/cpus-now[.]ts$';

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'known-rooms', severity: 'error', from: { path: '^lib/', pathNot: ROOMS.map(filesOf) }, to: {} },
    {
      name: 'pure-uses-values-of-node',
      severity: 'error',
      from: { path: PURE },
      to: { dependencyTypes: ['core'], pathNot: NODE_OF_VALUES },
    },
    {
      name: 'pure-reads-nothing',
      severity: 'error',
      from: { path: PURE, pathNot: GIVER },
      to: { path: READERS },
    },
    {
      name: 'decisions-are-given-cpus',
      severity: 'error',
      from: { path: '^lib/decision/' },
      to: { path: GIVER },
    },
    // The command line is a user of the package. It shares its words, and how input is checked.
    {
      name: 'cli-uses-the-api',
      severity: 'error',
      from: { path: '^lib/cli/' },
      to: { path: '^lib/', pathNot: '^lib/(cli|base|input|entries|metrics|index[.]ts)' },
    },
    ...ROOMS.slice(0, -1).map((room, place) => ({
      name: `${room}-is-below`,
      severity: 'error',
      from: { path: filesOf(room) },
      to: { path: ROOMS.slice(place + 1).map(filesOf) },
    })),
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    // Imports of types count as well.
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
  },
};
