// The rules for dependency-cruiser that follow from rooms.mjs.
import { HOUSES } from '../rooms.mjs';

/** The files of a room, without those of the rooms in it. */
const filesOf = (house, { name }) => (name === '.' ? `^${house}/[^/]+$` : `^${house}/${name}/[^/]+$`);

/** Each room imports only from those before it, and no file is outside of the rooms. */
export function roomRules(house) {
  const rooms = HOUSES[house].map((room) => filesOf(house, room));
  return [
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'known-rooms', severity: 'error', from: { path: `^${house}/`, pathNot: rooms }, to: {} },
    ...HOUSES[house].slice(0, -1).map(({ name }, place) => ({
      name: `${name}-is-below`,
      severity: 'error',
      from: { path: rooms[place] },
      to: { path: rooms.slice(place + 1) },
    })),
  ];
}

/** How the tool reads a package, with the options that are its own. */
export const cruiserOptions = (tsConfig, doNotFollow = 'node_modules') => ({
  tsConfig: { fileName: tsConfig },
  // Imports of types count as well.
  parser: 'swc',
  tsPreCompilationDeps: true,
  doNotFollow: { path: doNotFollow },
});

/**
 * The configuration for a package of packages/: its rooms, and numalign by its exports, as any
 * program has it.
 * @returns {import('dependency-cruiser').IConfiguration}
 */
export function packageRules(name) {
  const lib = `packages/${name}/lib`;
  const from = { path: `^${lib}/` };
  return {
    forbidden: [
      ...roomRules(lib),
      {
        name: 'numalign-by-its-exports',
        severity: 'error',
        from,
        to: { path: '^(lib|native|dist)/', pathNot: '^lib/(index|entries/[^/]+)[.]ts$' },
      },
      {
        name: 'packages-by-their-exports',
        severity: 'error',
        from,
        to: {
          path: '^packages/',
          pathNot: [
            `^${lib}/`,
            '^packages/claims/lib/index[.]ts$',
            '^packages/metrics/lib/(index|opentelemetry)[.]ts$',
            '^packages/page/lib/(index|listening|picture|words)[.]ts$',
          ],
        },
      },
    ],
    options: cruiserOptions('tsconfig.json', `node_modules|^dist|^lib|^packages/(?!${name}/)`),
  };
}
