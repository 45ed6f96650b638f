// The rooms of @numalign/kubernetes and the one order in which they may import each other: each
// only those before it. `npm run lint` holds the code against it.
const ROOMS = [
  'base',
  'protobuf',
  'grpc',
  'ttrpc',
  'nri',
  'cgroups',
  'placement',
  'containers',
  'cri',
  'kubelet',
  'device-plugin',
  'api-server',
  'publish',
  'check',
  '.',
  'cli',
];

/** The files of a room. */
const filesOf = (room) =>
  room === '.' ? '^packages/kubernetes/lib/[^/]+$' : `^packages/kubernetes/lib/${room}/`;

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'known-rooms',
      severity: 'error',
      from: { path: '^packages/kubernetes/lib/', pathNot: ROOMS.map(filesOf) },
      to: {},
    },
    // numalign as its users have it.
    {
      name: 'numalign-by-its-exports',
      severity: 'error',
      from: {},
      to: {
        path: '^(lib|native|dist)/',
        pathNot: '^dist/(index|entries/[^/]+|metrics/index)[.](c?js|d[.]ts)$',
      },
    },
    ...ROOMS.slice(0, -1).map((room, place) => ({
      name: `${room}-is-below`,
      severity: 'error',
      from: { path: filesOf(room) },
      to: { path: ROOMS.slice(place + 1).map(filesOf) },
    })),
  ],
  options: {
    tsConfig: { fileName: 'packages/kubernetes/tsconfig.json' },
    // Imports of types count as well.
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules|^dist|^lib' },
  },
};
