// Completion in shells on a terminal, as a user types.
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { bashCompletion } from '../../lib/completion/bash.js';
import { commandTree } from '../../lib/completion/command-tree.js';
import { fishCompletion } from '../../lib/completion/fish.js';
import { zshCompletion } from '../../lib/completion/zsh.js';
import { createProgram } from '../../lib/program.js';
import { formatJson } from '../../lib/terminal/text.js';
import { newFolder, type Running, start, until } from '../numalign.js';

const TREE = commandTree(createProgram());
const TERMINAL = fileURLToPath(new URL('../../../../test/support/terminal.py', import.meta.url));
const GRANTS = [
  { uid: '3f2a9c1e-0d1b-4c55-9a8e-6f1f0a7d2b34', name: 'gateway' },
  { uid: '77aa9c1e-0d1b-4c55-9a8e-6f1f0a7d2b34', name: '$(touch expanded)' },
];

/** A folder with a pod, a folder, and a `numalign` that says which grants there are, else its arguments. */
function surroundings(): { folder: string; env: NodeJS.ProcessEnv } {
  const folder = newFolder();
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  mkdirSync(join(folder, 'states'));
  writeFileSync(join(folder, 'pod.yaml'), '');
  writeFileSync(join(folder, 'status.json'), formatJson({ grants: GRANTS, lapsed: [] }));
  writeFileSync(
    join(bin, 'numalign'),
    `#!/bin/sh
if [ "$*" = 'status --output json' ]; then cat ${folder}/status.json; else echo "asked: $*"; fi
`,
    { mode: 0o755 },
  );
  writeFileSync(join(bin, 'only-here'), '', { mode: 0o755 });
  return { folder, env: { HOME: folder, TERM: 'xterm', PATH: `${bin}:${process.env.PATH}` } };
}

/** Types as a user would: `\t` asks for completion. */
function type({ process: child }: Running, text: string): void {
  for (const character of text) child.stdin!.write(`type ${character.charCodeAt(0)}\n`);
}

/** Ctrl-U. */
const CLEAR = '\u0015';

interface Shell {
  readonly command: readonly string[];
  /** Lines that load the script at `path`. */
  readonly begin: (path: string) => string;
  readonly script: string;
  readonly file: string;
}

const SHELLS: Readonly<Record<string, Shell>> = {
  bash: {
    command: ['bash', '--norc', '-i'],
    begin: (path) => `PS1='> ' HISTFILE=; source ${path}`,
    script: bashCompletion('numalign', TREE),
    file: 'numalign',
  },
  zsh: {
    command: ['zsh', '-f', '-i'],
    // By $fpath, as a package installs it.
    begin: (path) =>
      `PS1='> ' HISTFILE=; fpath=(${join(path, '..')} $fpath); autoload -Uz compinit; compinit -u -D`,
    script: zshCompletion('numalign', TREE),
    file: '_numalign',
  },
};

describe.each(Object.entries(SHELLS))('in %s on a terminal', (_, { command, begin, script, file }) => {
  async function started(): Promise<Running> {
    const { folder, env } = surroundings();
    const scripts = join(folder, 'scripts');
    mkdirSync(scripts);
    writeFileSync(join(scripts, file), script);
    const [first, ...rest] = ['python3', TERMINAL, '120', '40', '--', ...command];
    const running = start([], { program: [first!, ...rest], env });
    type(running, `cd ${folder}; ${begin(join(scripts, file))}; echo rea''dy\r`);
    await until(() => /^ready\r?$/m.test(running.output.stdout), 'the shell');
    return running;
  }

  /** What the terminal shows after `line` was typed, from there on. */
  async function typed(running: Running, line: string, shown: RegExp): Promise<string> {
    const from = running.output.stdout.length;
    type(running, line);
    await until(() => shown.test(running.output.stdout.slice(from)), `${shown}: ${running.output.stdout}`);
    return running.output.stdout.slice(from);
  }

  it('commands, options, choices, files, folders, programs and grants are completed', async () => {
    const lines = {
      'topol\t--outp\tj\t': /^asked: topology --output[ =]json\s*$/m,
      'plan --file pod\t': /^asked: plan --file pod\.yaml\s*$/m,
      'status --state-dir st\t': /^asked: status --state-dir states\/?\s*$/m,
      'run --cpus 2 -- only-h\t': /^asked: run --cpus 2 -- only-here\s*$/m,
      'attach 3f\t': /^asked: attach 3f2a9c1e-0d1b-4c55-9a8e-6f1f0a7d2b34\s*$/m,
    };
    const running = await started();
    for (const [line, shown] of Object.entries(lines)) await typed(running, `numalign ${line}\r`, shown);
  });

  it('choices and grants are listed, and none that the shell would expand', async () => {
    const running = await started();
    await typed(running, 'numalign plan --policy \t\t', /best-effort.*none.*restricted.*single-numa-node/s);
    type(running, CLEAR);
    expect(await typed(running, 'numalign release \t\t', /gateway/)).not.toContain('expanded');
  });
});

describe('in fish', () => {
  /** What fish offers, each word of a line of its own. */
  function offered(line: string): string[] {
    const { folder, env } = surroundings();
    const completions = join(folder, '.config/fish/completions');
    mkdirSync(completions, { recursive: true });
    writeFileSync(join(completions, 'numalign.fish'), fishCompletion('numalign', TREE));
    const { stdout, stderr } = spawnSync('fish', ['-c', `cd ${folder}; complete -C '${line}'`], {
      encoding: 'utf8',
      env: { ...process.env, ...env },
    });
    expect(stderr).toBe('');
    return stdout
      .trimEnd()
      .split('\n')
      .map((each) => each.split('\t')[0]!);
  }

  it('commands, options and choices are offered', () => {
    expect(offered('numalign ').sort()).toEqual(TREE.commands.map(({ path }) => path[0]).sort());
    expect(offered('numalign state export --ku')).toEqual(['--kubelet']);
    expect(offered('numalign topology --output ').sort()).toEqual(['json', 'text']);
    expect(offered('numalign plan --policy r')).toEqual(['restricted']);
  });

  it('files, folders, programs and grants are offered where they fit', () => {
    expect(offered('numalign plan --file po')).toEqual(['pod.yaml']);
    expect(offered('numalign status --state-dir st')).toEqual(['states/']);
    expect(offered('numalign run --cpus 2 -- only-h')).toEqual(['only-here']);
    const ids = offered('numalign release ');
    expect(ids).toEqual(expect.arrayContaining(['gateway', GRANTS[0]!.uid, GRANTS[1]!.uid]));
    expect(ids.join()).not.toContain('expanded');
  });
});
