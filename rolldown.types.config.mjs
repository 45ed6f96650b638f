// The types of the package, from those of its modules: a file for each entry, and few that they share.
import { defineConfig } from 'rolldown';
import { dts } from 'rolldown-plugin-dts';
import { aliasHiddenInterfaces } from './scripts/hidden-types.mjs';

const TYPES = './dist-test/types';
const ENTRIES = [
  ...['index', 'preload'],
  ...['cluster', 'diagnostics', 'kubelet', 'tools', 'topology'].map((name) => `entries/${name}`),
];

export default defineConfig({
  input: Object.fromEntries(ENTRIES.map((entry) => [entry, `${TYPES}/${entry}.d.ts`])),
  external: /^[^./]/,
  // Else what all share may become a part of an entry, whose names then are others.
  experimental: { chunkOptimization: false },
  plugins: [dts({ dtsInput: true, tsconfig: false }), aliasHiddenInterfaces()],
  output: {
    dir: 'dist',
    chunkFileNames: '[name].d.ts',
    // admission-error.ts adds members to a type of error-details.ts, which it names by file and name.
    minifyInternalExports: false,
    codeSplitting: {
      groups: [
        {
          name: 'base/codes/error-details',
          test: /base\/codes\/error-details\.d\.ts$/,
          includeDependenciesRecursively: false,
        },
        { name: 'types/shared', minShareCount: 2 },
      ],
    },
  },
});
