// The JavaScript of the command: in few files, by what a command needs, since Node takes a third of a
// millisecond for each file, and longer to read code than most of it takes to run. What few commands
// need is imported where they need it. CommonJS starts sooner than ES modules.
import { readFileSync } from 'node:fs';
import { defineConfig } from 'rolldown';
import { inAscii, lateParts } from '../../scripts/bundles.mjs';

// Every command needs them.
const OTHERS = ['commander', 'picocolors'];
const BUNDLED = [...OTHERS, '@numalign/claims', '@numalign/page'];
const isPicture = (id) => id.includes('/packages/page/lib/picture/');
const isBundled = (id) => BUNDLED.some((name) => id === name || id.startsWith(`${name}/`));

const notices = {
  name: 'notices',
  generateBundle() {
    const licences = OTHERS.map((name) => {
      const licence = readFileSync(new URL(`../../node_modules/${name}/LICENSE`, import.meta.url), 'utf8');
      return `## ${name}\n\n\`\`\`text\n${licence.trim()}\n\`\`\`\n`;
    });
    const source = `# Third-party notices\n\nThese files contain:\n\n${licences.join('\n')}`;
    this.emitFile({ type: 'asset', fileName: 'THIRD-PARTY-NOTICES.md', source });
  },
};

/** What others do when they are loaded, and what they do in its place: Node takes milliseconds for each. */
const INSTEAD = {
  // terminal.ts chooses the colours.
  'picocolors.js': ['(p.stdout || {}).isTTY', 'false'],
  // Only for commands in files of their own.
  'commander/lib/command.js': [
    "require('node:child_process')",
    "{ spawn: (...args) => process.getBuiltinModule('node:child_process').spawn(...args) }",
  ],
};

const loadingLess = {
  name: 'loading-less',
  transform(code, id) {
    const file = Object.keys(INSTEAD).find((name) => id.endsWith(`/${name}`));
    if (file === undefined) return undefined;
    const [what, instead] = INSTEAD[file];
    if (!code.includes(what)) throw new Error(`${id} has no ${what} any more`);
    return code.replace(what, instead);
  },
};

// `numalign run` needs none of these before the program takes its place.
const LATE = {
  'node:child_process': ['spawn', 'spawnSync'],
  'node:diagnostics_channel': ['subscribe', 'unsubscribe'],
  'node:crypto': ['createHash', 'randomUUID', 'timingSafeEqual'],
  'node:fs/promises': ['copyFile', 'link', 'mkdir', 'open', 'readFile', 'rename', 'rm', 'writeFile'],
  'node:net': ['isIP', 'isIPv4', 'isIPv6'],
  'node:timers/promises': ['setTimeout'],
  'node:tty': ['isatty'],
};

const isLate = (id) => id.replace('\0', '') in LATE;

/** Parts of Node: require() in compiled code takes longer. */
const partsOfNode = {
  name: 'parts-of-node',
  generateBundle(_, bundle) {
    const part = 'globalThis.process.getBuiltinModule($1)';
    for (const chunk of Object.values(bundle))
      chunk.code &&= chunk.code.replace(/\brequire\(("node:[^"]+")\)/g, part);
  },
};

// main.ts loads these at once.
const AT_ONCE = ['run', 'shared'];

const command = {
  input: {
    main: 'lib/main.ts',
    program: 'lib/program.ts',
    install: 'lib/install.ts',
  },
  // What else the package depends on stays where npm puts it.
  external: (id) => /^[^./]/.test(id) && !isBundled(id) && !isLate(id),
  plugins: [lateParts(LATE), loadingLess, inAscii, partsOfNode, notices],
  platform: 'node',
  transform: { target: 'es2022' },
  output: {
    dir: 'dist',
    format: 'cjs',
    comments: false,
    // Compiled code cannot import().
    dynamicImportInCjs: false,
    sourcemap: true,
    // A process that was started before the package was replaced must not load files of another one, but
    // for those that it loads at once.
    chunkFileNames: ({ name }) => (AT_ONCE.includes(name) ? '[name].cjs' : '[name]-[hash].cjs'),
    entryFileNames: '[name].cjs',
    // One file for what `run` needs, and one for all else that several of them have, but for pictures,
    // which few commands draw.
    codeSplitting: {
      groups: [
        { name: 'run', test: /\/lib\/(?:run-alone|terminal\/start)\.ts$/, priority: 2 },
        { name: 'shared', test: (id) => !isPicture(id), minShareCount: 2, priority: 1 },
        { name: 'picture', test: isPicture },
      ],
    },
  },
};

export default defineConfig(command);
