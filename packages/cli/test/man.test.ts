// needs: nothing
import { spawnSync } from 'node:child_process';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { manPages } from '../../../scripts/reference/man.mjs';
import { read } from '../../../test/support/documents.js';
import { createProgram } from '../lib/program.js';

const program = createProgram();
const PAGES = manPages(program, { version: '1.2.3', date: '2026-01-02', stateDir: '/run/numalign' });

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)}-${command.name()}` : command.name();
const withBelow = (command: Command): Command[] => [command, ...command.commands.flatMap(withBelow)];
const ALL = withBelow(program).map((command) => [pathOf(command), command] as const);

/** The lines of a section, as they are read. */
function section(page: string, title: string): string {
  const [, text = ''] =
    new RegExp(`^\\.SH ${title}\n([\\s\\S]*?)(?=^\\.SH |(?![\\s\\S]))`, 'm').exec(page) ?? [];
  return text
    .replace(/\\f[BIR]/g, '')
    .replace(/\\\(aq/g, "'")
    .replace(/\\([-&%])/g, (_, mark) => (mark === '-' ? '-' : ''));
}

describe('the man pages', () => {
  it('are one of the program and one of each command, all of which the package installs', () => {
    expect(Object.keys(PAGES)).toEqual(ALL.map(([path]) => `${path}.1`));
    const { man } = JSON.parse(read('packages/cli/package.json')) as { man: string[] };
    expect(man).toEqual(
      Object.keys(PAGES)
        .map((name) => `dist/man/${name}`)
        .sort(),
    );
  });

  it.each(ALL)('of %s has its name, how to call it, and every option of its help', (path, command) => {
    const page = PAGES[`${path}.1`]!;
    expect(page).toMatch(
      new RegExp(
        `^\\.\\\\" .*\n\\.TH ${path.toUpperCase()} 1 "2026-01-02" "numalign 1\\.2\\.3" "numalign"\n`,
      ),
    );
    expect(section(page, 'NAME')).toMatch(new RegExp(`^${path} - [^\n]+[^.]\n$`));
    expect(section(page, 'SYNOPSIS')).toMatch(new RegExp(`^${path.replaceAll('-', '.')} `));
    const options = section(page, 'OPTIONS').split('\n');
    for (const option of command.createHelp().visibleOptions(command))
      expect(options.some((line) => line.includes(option.long!))).toBe(true);
    for (const child of command.commands) expect(section(page, 'COMMANDS')).toContain(child.name());
    expect(section(page, 'SEE ALSO')).toContain(path === 'numalign' ? 'taskset (1)' : '.BR numalign');
  });

  it('have exit codes and the keys of JSON in sections of their own', () => {
    expect(section(PAGES['numalign-top.1']!, 'EXIT STATUS')).toMatch(/^0, also if there is no state/);
    expect(section(PAGES['numalign-top.1']!, 'JSON')).toMatch(/^time, stateDir, generation, grants /);
    expect(section(PAGES['numalign-run.1']!, 'EXAMPLES')).toMatch(/^\.EX\n\$ numalign run .*\n/);
    expect(section(PAGES['numalign.1']!, 'FILES')).toContain('/run/numalign');
  });

  it('have no request that a text makes, and ASCII only', () => {
    const requests = Object.values(PAGES).flatMap((page) => page.match(/^[.'].*/gm) ?? []);
    expect(requests.filter((line) => !/^\.(\\"|TH|SH|PP|TP|IP|EX|EE|BR|ad)( |$)/.test(line))).toEqual([]);
    expect(
      Object.values(PAGES)
        .join('')
        .match(/\P{ASCII}/gu),
    ).toBeNull();
  });

  it.runIf(spawnSync('mandoc', ['-h']).error === undefined)('are what mandoc accepts', () => {
    for (const [name, input] of Object.entries(PAGES)) {
      const { stdout } = spawnSync('mandoc', ['-Tlint', '-Wwarning'], { input, encoding: 'utf8' });
      expect([name, stdout]).toEqual([name, '']);
    }
  });
});
