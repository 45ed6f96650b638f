// What holds for each package: rooms that import each other in one order only, and numalign by its
// exports, as any program has it. `npm run lint` holds the code against it.

/** @returns {import('dependency-cruiser').IConfiguration} `rooms`: each imports only those before it */
module.exports = (name, rooms) => {
  const lib = `packages/${name}/lib`;
  /** The files of a room, with those of the rooms in it that are not named. */
  const filesOf = (room) => {
    const inside = rooms
      .filter((other) => other.startsWith(`${room}/`))
      .map((other) => other.slice(room.length + 1));
    if (room === '.') return `^${lib}/[^/]+$`;
    return `^${lib}/${room}/${inside.length > 0 ? `(?!(${inside.join('|')})/)` : ''}`;
  };
  return {
    forbidden: [
      { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
      {
        name: 'known-rooms',
        severity: 'error',
        from: { path: `^${lib}/`, pathNot: rooms.map(filesOf) },
        to: {},
      },
      {
        name: 'numalign-by-its-exports',
        severity: 'error',
        from: { path: `^${lib}/` },
        to: { path: '^(lib|native|dist)/', pathNot: '^lib/(index|entries/[^/]+)[.]ts$' },
      },
      {
        name: 'packages-by-their-exports',
        severity: 'error',
        from: { path: `^${lib}/` },
        to: {
          path: '^packages/',
          pathNot: [`^${lib}/`, '^packages/metrics/lib/(index|opentelemetry)[.]ts$'],
        },
      },
      ...rooms.slice(0, -1).map((room, place) => ({
        name: `${room}-is-below`,
        severity: 'error',
        from: { path: filesOf(room) },
        to: { path: rooms.slice(place + 1).map(filesOf) },
      })),
    ],
    options: {
      tsConfig: { fileName: 'tsconfig.json' },
      // Imports of types count as well.
      parser: 'swc',
      tsPreCompilationDeps: true,
      doNotFollow: { path: `node_modules|^dist|^lib|^packages/(?!${name}/)` },
    },
  };
};
