// needs: nothing
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { installIn } from '../../../test/support/installed.js';
import { createProgram } from '../lib/program.js';
import { MAIN, newFolder, numalign, type Result, start } from './numalign.js';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const ESCAPE = '\u001b[';

describe('the command line', () => {
  it('fits its help on one screen, which starts with the main tasks', async () => {
    const program = ['env', 'COLUMNS=100', process.execPath, MAIN] as const;
    const { stdout } = await numalign(['--help'], { program });
    const lines = stdout.trimEnd().split('\n');
    expect(lines.length).toBeLessThanOrEqual(36);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(100);
    expect(lines.slice(4, 7).map((line) => line.trim())).toEqual([
      expect.stringMatching(/^numalign run /),
      expect.stringMatching(/^numalign plan /),
      'numalign status; numalign topology',
    ]);
    expect(stdout).toContain('\nExit code: ');
  });

  it.each([
    ['topology'],
    ['plan'],
    ['run'],
    ['admit'],
    ['status'],
    ['release'],
    ['configure'],
    ['state'],
    ['state', 'export'],
    ['state', 'import'],
    ['agent'],
    ['attach'],
    ['share'],
    ['doctor'],
    ['completion'],
  ])('%s --help has examples, and lists the exit codes', async (...command) => {
    const { code, stdout, stderr } = await numalign([...command, '--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    // Its commands have them.
    if (command.join() !== 'state') expect(stdout).toMatch(/\nExit code: /);
    expect(stdout).toMatch(/\nExamples:\n {2}\$ numalign /);
  });

  it('says that it cannot print, in one line', async () => {
    const program = ['sh', '-c', 'exec "$0" "$@" >/dev/full', process.execPath, MAIN] as const;
    const { code, stderr } = await numalign(['--version'], { program });
    expect(code).toBe(1);
    expect(stderr).toBe(
      'numalign: cannot write to standard output: ENOSPC: no space left on device, write [ERR_SYSCALL]\n',
    );
  });

  it('prints the version of the package', async () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(await numalign(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n` });
  });

  it('prints JSON in every command that reports results', () => {
    const leaves = (command: Command): Command[] =>
      command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
    const without = leaves(createProgram()).filter(
      ({ options }) => !options.some(({ long }) => long === '--output'),
    );
    // The output of completion is a script.
    expect(without.map((command) => command.name())).toEqual(['completion']);
  });

  it('knows the same of a command that is made alone as of one among all', () => {
    const helps = (command: Command): string[] => [
      command.helpInformation(),
      ...command.commands.flatMap(helps),
    ];
    const all = createProgram().commands;
    expect(all.length).toBeGreaterThan(10);
    for (const command of all) {
      const alone = createProgram(command.name()).commands;
      expect(alone.map((each) => each.name())).toEqual([command.name()]);
      expect(helps(alone[0]!)).toEqual(helps(command));
    }
  });

  it('suggests what a misspelled command or option may have meant, and exits with 2', async () => {
    const command = await numalign(['topolgy']);
    expect(command.code).toBe(2);
    expect(command.stderr).toMatch(/^numalign: unknown command 'topolgy'\n\(Did you mean topology\?\)\n/);
    const option = await numalign(['status', '--ouput', 'json']);
    expect(option.code).toBe(2);
    expect(option.stderr).toContain('(Did you mean --output?)');
    expect((await numalign([])).code).toBe(2);
  });

  it('has no escape codes in a pipe or with NO_COLOR, and has them with FORCE_COLOR', async () => {
    const folder = newFolder();
    await numalign(['configure', '--reserved', '0', '--state-dir', folder]);
    const topology = ['topology', '--state-dir', folder];
    expect((await numalign(topology)).stdout).not.toContain(ESCAPE);
    expect((await numalign(topology, { env: { CI: '1' } })).stdout).not.toContain(ESCAPE);
    expect((await numalign(topology, { env: { NO_COLOR: '1', FORCE_COLOR: '1' } })).stdout).not.toContain(
      ESCAPE,
    );
    expect((await numalign(topology, { env: { FORCE_COLOR: '1' } })).stdout).toContain(ESCAPE);
  });

  it.each([
    ['topology', '--synthetic', 'core:2 pu:2'],
    ['plan', '--synthetic', 'core:2 pu:2', '-f', '/nonexistent.yaml'],
    ['status'],
    ['configure', '--reserved', '0'],
    ['state', 'export', '--kubelet', '/nonexistent/folder'],
    ['doctor', '--output', 'yaml'],
    ['completion', 'bash'],
    ['status', '--help'],
  ])('does the same for %s as a program and in the process of a test', async (...args) => {
    const isOfFolder = ['status', 'configure', 'state'].includes(args[0]!) && !args.includes('--help');
    const folder = () => (isOfFolder ? ['--state-dir', join(newFolder(), 'state')] : []);
    const withoutFolder = ({ code, stdout, stderr }: Result) => ({
      code,
      printed: [stdout, stderr].map((text) => text.replaceAll(/\/\S*numalign-cli-\S*/g, 'FOLDER')),
    });
    const asProgram = await start([...args, ...folder()]).ended;
    expect(withoutFolder(asProgram)).toEqual(withoutFolder(await numalign([...args, ...folder()])));
  });

  it('ends quietly when its reader goes away', async () => {
    const line = `"${process.execPath}" "${MAIN}" topology --synthetic 'package:8 core:64 pu:2' --output json | head -n 1`;
    const { stdout, stderr } = await numalign([], { program: ['/bin/sh', '-c', line] });
    expect({ stdout, stderr }).toEqual({ stdout: '{\n', stderr: '' });
  });

  it('shows a stack only with NUMALIGN_DEBUG=1', async () => {
    const args = ['topology', '--json', '/nonexistent.json'];
    expect((await numalign(args)).stderr.split('\n')).toHaveLength(2);
    expect((await numalign(args, { env: { NUMALIGN_DEBUG: '1' } })).stderr).toMatch(/\n {4}at /);
  });

  it('fills its help to the width', async () => {
    const { stdout } = await numalign(['status', '--help'], { env: { COLUMNS: '70' } });
    const prose = stdout.split('\n').filter((line) => !line.startsWith(' '));
    expect(prose.length).toBeGreaterThan(8);
    expect(prose.filter((line) => line.length > 70)).toEqual([]);
    // Also without a command, on stderr.
    const bare = await numalign([], { env: { COLUMNS: '70' } });
    const lines = bare.stderr.split('\n').filter((line) => !line.startsWith(' '));
    expect([bare.code, bare.stdout, lines.length > 8]).toEqual([2, '', true]);
    expect(lines.filter((line) => line.length > 70)).toEqual([]);
  });

  it('prints an error as a line of JSON if JSON is requested', async () => {
    const json = ['--output', 'json', '--state-dir', newFolder()];
    const errorOf = async (...args: string[]) => {
      const { code, stdout, stderr } = await numalign(args);
      expect(stdout).toBe('');
      expect(stderr.trimEnd()).not.toContain('\n');
      return { exit: code, ...(JSON.parse(stderr) as { error: object }).error };
    };
    expect(await errorOf('release', 'unknown', ...json)).toEqual({
      exit: 1,
      code: 'ERR_UNKNOWN_GRANT',
      message: expect.stringContaining('"unknown"'),
      details: { value: 'unknown', valid: [] },
    });
    expect(await errorOf('run', '--cpus', '1000', ...json, '--', 'true')).toMatchObject({
      exit: 1,
      code: 'ERR_INSUFFICIENT_CPUS',
      details: { explanation: { admittedUnder: [] } },
    });
    expect(await errorOf('run', '--cpus', '1', ...json, '--', './no-such-command')).toEqual({
      exit: 127,
      code: null,
      message: expect.stringContaining('not found'),
      details: {},
    });
  });

  it('says how to build a missing addon', async () => {
    const packages = installIn(newFolder(), { addon: true });
    const { code, stderr } = await numalign(['status'], {
      program: [process.execPath, join(packages, '@numalign/cli/dist/main.cjs')],
    });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^numalign: the native addon .*npm rebuild numalign.* \[ERR_ADDON_MISSING\]\n$/);
  });
});
