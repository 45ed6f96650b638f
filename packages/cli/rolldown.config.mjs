// The JavaScript of the command: in few files, by what a command needs, since Node takes a third of a
// millisecond for each file, and longer to read code than most of it takes to run. What few commands
// need is imported where they need it. CommonJS starts sooner than ES modules.
import { defineConfig } from 'rolldown';

export default defineConfig({
  input: { main: 'lib/main.ts', program: 'lib/program.ts' },
  external: /^[^./]/, // What the package depends on stays where npm puts it.
  platform: 'node',
  transform: { target: 'es2022' },
  output: {
    dir: 'dist',
    format: 'cjs',
    comments: false,
    sourcemap: true,
    // A process that was started before the package was replaced must not load files of another one.
    chunkFileNames: '[name]-[hash].cjs',
    entryFileNames: '[name].cjs',
    // One file for all that several of them have.
    codeSplitting: { groups: [{ name: 'shared', minShareCount: 2 }] },
  },
});
