// needs: nothing
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Argument, Command, Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { bashCompletion } from '../lib/completion/bash.js';
import { type CompletedCommand, commandTree } from '../lib/completion/command-tree.js';
import { fishCompletion } from '../lib/completion/fish.js';
import { zshCompletion } from '../lib/completion/zsh.js';
import { createProgram } from '../lib/program.js';
import { formatJson } from '../lib/terminal/text.js';
import { newFolder, numalign } from './numalign.js';

const TREE = commandTree(createProgram());

/** Bash's suggestions for the last of these words, which are as bash splits them. */
function offered(script: string, ...words: string[]): string[] {
  const ask = `${script}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_numalign
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stdout, stderr } = spawnSync('bash', ['-c', ask, 'bash', 'numalign', ...words], {
    encoding: 'utf8',
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.trimEnd().split('\n');
}

const has = (shell: string) => spawnSync(shell, ['--version']).status === 0;

describe('completion', () => {
  it('covers every command of the program, with every option in its help', () => {
    const check = (command: Command, completed: CompletedCommand) => {
      const help = command.helpInformation();
      const shown = [...help.slice(help.indexOf('\nOptions:')).matchAll(/^ {2}(?:(-\w), )?(--[\w-]+)/gm)];
      const flags = shown.map(([, short, long]) => [short, long].filter((flag) => flag !== undefined));
      expect(flags.length).toBeGreaterThan(0);
      expect(completed.options.map((option) => option.flags)).toEqual(flags);
      expect(completed.commands.map(({ path }) => path.at(-1))).toEqual(
        command.commands.map((child) => child.name()),
      );
      for (const [i, child] of command.commands.entries()) check(child, completed.commands[i]!);
    };
    check(createProgram(), TREE);
    expect(TREE.commands.flatMap(({ path }) => path)).toEqual(
      expect.arrayContaining(['run', 'state', 'doctor']),
    );
  });

  it('knows the kinds of values: choices, files, folders, programs, or any text', () => {
    const command = new Command('x')
      .addOption(new Option('-c, --color <when>', '').choices(['always', 'never']))
      .option('--config <file>', '')
      .option('--state-dir <dir>', '')
      .option('--name [name]', '')
      .option('--quiet', '')
      .addArgument(new Argument('<mode>', '').choices(['a', 'b']))
      .argument('<command>')
      .argument('[args...]');
    const { options, values, isVariadic } = commandTree(command);
    expect(options.map(({ value }) => value)).toEqual([
      ['always', 'never'],
      'file',
      'folder',
      'text',
      undefined,
      undefined,
    ]);
    expect([values, isVariadic]).toEqual([[['a', 'b'], 'program', 'file'], true]);
  });
});

describe('numalign completion', () => {
  it.each([
    ['bash', bashCompletion],
    ['zsh', zshCompletion],
    ['fish', fishCompletion],
  ])('prints the script for %s', async (shell, script) => {
    expect(await numalign(['completion', shell])).toMatchObject({
      code: 0,
      stdout: script('numalign', TREE),
      stderr: '',
    });
  });

  it('refuses another shell, and names those that it knows', async () => {
    const { code, stderr } = await numalign(['completion', 'tcsh']);
    expect(code).toBe(2);
    expect(stderr).toContain("'tcsh' is invalid");
    expect(stderr).toContain('bash, zsh, fish');
  });
});

describe('in bash', () => {
  const script = bashCompletion('numalign', TREE);
  const offers = (...words: string[]) => offered(script, ...words);

  it('commands and their commands are offered', () => {
    expect(offers('')).toEqual(TREE.commands.map(({ path }) => path[0]));
    expect(offers('to')).toEqual(['top', 'topology']);
    expect(offers('state', '')).toEqual(['show', 'export', 'import']);
    expect(offers('nonsense', '')).toEqual(offers('-'));
  });

  it('options of the command are offered, even without a dash if nothing else fits', () => {
    expect(offers('--v')).toEqual(['--version']);
    expect(offers('state', 'export', '--')).toEqual(['--kubelet', '--state-dir', '--output', '--help']);
    expect(offers('release', '')).toContain('--state-dir');
    expect(offers('topology', '--kub')).toEqual(['']);
  });

  it('choices are offered for options and arguments, also after =, where bash splits words', () => {
    expect(offers('topology', '--output', '')).toEqual(['text', 'json']);
    expect(offers('topology', '--output', '=')).toEqual(['text', 'json']);
    expect(offers('topology', '--output', '=', 'j')).toEqual(['json']);
    expect(offers('plan', '-f', 'pod.yaml', '--policy', 'r')).toEqual(['restricted']);
    expect(offers('completion', 'z')).toEqual(['zsh']);
    expect(offers('completion', 'zsh', '')).toEqual(['-h', '--help']);
  });

  it('values are offered after an option that takes one, and only there', () => {
    expect(offers('run', '--quiet', 'i')).toEqual(['interrupts', 'idle']);
    expect(offers('run', '--quiet', '--na')).toEqual(['--name']);
    expect(offers('run', '--quiet', '--', 'bas')).toContain('bash');
    expect(offers('run', '--quiet', '--', 'bash', '--na')).toEqual(['']);
    expect(offers('run', '--quiet', 'idle', 'bas')).toContain('bash');
    expect(offers('run', '--require-quiet', 'work')).toEqual(['workqueues']);
  });

  it('files and folders are offered where they fit', () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'pod.yaml'), '');
    expect(offers('plan', '--file', join(folder, 'p'))).toEqual([join(folder, 'pod.yaml')]);
    expect(offers('status', '--state-dir', join(folder, 'p'))).toEqual(['']);
    expect(offers('status', '--state-dir', folder)).toEqual([folder]);
    expect(offers('run', '--cpus', '')).toEqual(['']);
  });

  it('ids and names of grants are offered where they fit, except names that the shell would expand', () => {
    const [folder, id] = [newFolder(), '3f2a9c1e-0d1b-4c55-9a8e-6f1f0a7d2b34'];
    const grants = [id, 'pod.of-kubernetes', '$(touch expanded)', 'two words', '`ls`'].map((each) => ({
      uid: each,
      name: each === id ? 'gateway' : each,
    }));
    writeFileSync(join(folder, 'status.json'), formatJson({ grants, lapsed: [] }));
    writeFileSync(join(folder, 'numalign'), `#!/bin/sh\ncat ${folder}/status.json\n`, { mode: 0o755 });
    const withIt = `PATH=${folder}:$PATH; cd ${folder}\n${script}`;
    expect(offered(withIt, 'release', '')).toEqual([id, 'gateway', 'pod.of-kubernetes']);
    expect(offered(withIt, 'attach', '3f')).toEqual([id]);
    expect(readdirSync(folder)).not.toContain('expanded');
  });

  it.each([
    ['--state-dir', '/srv/a state'],
    ['--state-dir', '=', '/srv/a state'],
  ])('ids are those of the state folder in %s %s', (...words) => {
    const folder = newFolder();
    writeFileSync(
      join(folder, 'numalign'),
      `#!/bin/sh\necho '      "uid": "seen",'; echo "$*" >> ${folder}/calls\n`,
      { mode: 0o755 },
    );
    expect(offered(`PATH=${folder}:$PATH\n${script}`, 'release', ...words, '')).toEqual(['seen']);
    expect(readFileSync(join(folder, 'calls'), 'utf8')).toBe(
      'status --output json --state-dir /srv/a state\n',
    );
  });

  it('programs are offered to run, then files, and no more options', () => {
    expect(offers('run', '--cpus', '2', 'bas')).toContain('bash');
    expect(offers('run', '--cpus', '2', '--', 'bas')).toContain('bash');
    expect(offers('run', '--device', 'a', '=', 'class', ':', '02', '--qui')).toEqual(['--quiet']);
    expect(offers('run', '--cpus', '2', 'bash', '--qui')).toEqual(['']);
    const folder = newFolder();
    writeFileSync(join(folder, 'script'), '');
    expect(offers('run', '--cpus', '2', '--', 'bash', join(folder, 's'))).toEqual([join(folder, 'script')]);
  });
});

describe('the scripts of other shells', () => {
  it.runIf(has('zsh'))('are accepted by zsh', () => {
    const { status, stderr } = spawnSync('zsh', ['-n'], {
      input: zshCompletion('numalign', TREE),
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  });

  it.runIf(has('fish'))('are accepted by fish, which offers the same', () => {
    const offers = (line: string) => {
      const ask = `${fishCompletion('numalign', TREE)}\ncomplete -C '${line}'`;
      const { stdout, stderr } = spawnSync('fish', ['-c', ask], { encoding: 'utf8' });
      expect(stderr).toBe('');
      return stdout;
    };
    expect(offers('numalign topology --output ')).toMatch(/^json\b.*\ntext\b/);
    expect(offers('numalign run --cpus 2 -- bas')).toMatch(/^bash\b/m);
  });

  it('quote special characters of descriptions', () => {
    const program = new Command('x').description("it's").option('--a <b>', "it's [this]: that");
    const tree = commandTree(program);
    expect(zshCompletion('x', tree)).toContain("'*--a=[it'\\''s \\[this\\]\\: that]:value: '");
    expect(fishCompletion('x', tree)).toContain("-d 'it\\'s [this]: that'");
  });
});
