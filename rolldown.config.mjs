// The JavaScript of the package. Each module of lib is a file of dist, as its types are, but the
// code is in a few that they share: Node's loader takes half a millisecond for every file, and lib
// has more than a hundred.
import { readdirSync } from 'node:fs';
import { defineConfig } from 'rolldown';

const modules = readdirSync('lib', { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.ts'),
);

export default defineConfig({
  input: Object.fromEntries(modules.map((name) => [name.slice(0, -'.ts'.length), `lib/${name}`])),
  // What the package depends on stays where npm puts it.
  external: /^[^./]/,
  platform: 'node',
  transform: { target: 'es2022' },
  output: {
    dir: 'dist',
    sourcemap: true,
    chunkFileNames: '[name].js',
    codeSplitting: {
      // Each with what it imports, directly or not, that is in none before it.
      groups: [
        // What tells that the addon is missing does not load it.
        { name: 'common', test: /lib\/(base\/(errors|text\/printable)|input\/quantity)\.ts$/ },
        // All that a Worker below numalign/preload needs.
        { name: 'addon', test: /lib\/base\/native\.ts$/ },
        { name: 'library', test: /lib\/(index|entries\/\w+)\.ts$/ },
        { name: 'metric-set', test: /lib\/metrics\/index\.ts$/ },
        { name: 'cli/report', test: /lib\/cli\/terminal\/report-error\.ts$/ },
        { name: 'cli/commands', test: /lib\/cli\/program\.ts$/ },
      ],
    },
  },
});
