// needs: machine
// Below a root of the test's own: the machine stays unchanged.
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { read } from '../../../test/support/documents.js';
import { MAIN, newFolder, numalign } from './numalign.js';
import { exposureOf, hasSystemd, isRoot, verify } from './systemd.js';

const FILES = {
  sysusers: 'etc/sysusers.d/numalign.conf',
  tmpfiles: 'etc/tmpfiles.d/numalign.conf',
  slice: 'etc/systemd/system/numalign.slice',
  agent: 'etc/systemd/system/numalign-agent.service',
  bootUnit: 'etc/systemd/system/numalign.service',
};
const PATHS = Object.values(FILES);

/** A system with nothing in it but a user. */
function newRoot(): string {
  const root = newFolder();
  for (const name of ['etc', 'run']) mkdirSync(join(root, name));
  writeFileSync(join(root, 'etc/passwd'), 'web:x:1001:1001::/:/bin/sh\n');
  writeFileSync(join(root, 'etc/group'), 'web:x:1001:\n');
  return root;
}

/** All files with their content, except backups of other programs. */
const filesOf = (root: string) =>
  Object.fromEntries(
    readdirSync(root, { recursive: true, withFileTypes: true, encoding: 'utf8' })
      .filter((entry) => entry.isFile() && !/-$|^\.|gshadow/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .map((path) => [path.slice(root.length + 1), readFileSync(path, 'utf8')]),
  );

const setup = (root: string, ...args: string[]) => numalign(['setup', '--root', root, ...args]);

async function done(root: string, ...args: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await setup(root, ...args);
  expect([code, stderr]).toEqual([0, '']);
  return stdout.trimEnd().split('\n');
}

const groupsOf = (root: string) => readFileSync(join(root, 'etc/group'), 'utf8');
const startOf = (root: string) =>
  /^ExecStart=(.*)$/m.exec(readFileSync(join(root, FILES.bootUnit), 'utf8'))![1];

describe.runIf(hasSystemd && isRoot)('numalign setup', () => {
  it('makes group, folder, slice, and an enabled agent and boot unit, like the programs of systemd', async () => {
    const root = newRoot();
    const lines = await done(root, '--reserved', '0', '--strict');
    expect(lines.slice(0, 5)).toEqual(PATHS.map((path) => `made ${root}/${path}`));
    const [, id] = /^numalign:x:(\d+):$/m.exec(groupsOf(root))!;
    const { mode, uid, gid } = statSync(join(root, 'run/numalign'));
    expect([mode & 0o7777, uid, String(gid)]).toEqual([0o2770, 0, id]);
    expect(readdirSync(join(root, 'etc/systemd/system/multi-user.target.wants'))).toEqual([
      'numalign-agent.service',
      'numalign.service',
    ]);
    expect(startOf(root)).toBe(`${process.execPath} ${MAIN} configure --reserved 0 --strict`);
    const unit = (path: string) => readFileSync(join(root, path), 'utf8');
    const units = {
      'numalign.service': unit(FILES.bootUnit),
      'numalign-agent.service': unit(FILES.agent),
      'numalign.slice': unit(FILES.slice),
    };
    expect(verify(units)).toBe('');
    const services = readFileSync(new URL('../../../docs/services.md', import.meta.url), 'utf8');
    const exposure = exposureOf('numalign-agent.service', units['numalign-agent.service']);
    expect(/The units have no sandbox: `systemd-analyze security` says (.*)\./.exec(services)?.[1]).toBe(
      exposure,
    );
    // It is never given up.
    expect(unit(FILES.agent)).toMatch(/\nStartLimitIntervalSec=0\n.*\nRestart=always\n/s);
    expect(unit(FILES.agent)).toContain(
      `\nExecStart=${process.execPath} ${MAIN} agent --no-listen --beside-kubelet\n`,
    );
  });

  it('makes no boot unit without settings, and makes it later with them', async () => {
    const root = newRoot();
    const lines = await done(root);
    expect(lines.slice(0, 4)).toEqual(PATHS.slice(0, 4).map((path) => `made ${root}/${path}`));
    expect(lines.join('\n')).not.toMatch(/numalign\.service/);
    expect(Object.keys(filesOf(root))).not.toContain(FILES.bootUnit);
    expect((await done(root, '--no-strict'))[4]).toBe(`made ${root}/${FILES.bootUnit}`);
    expect(startOf(root)).toMatch(/ configure --no-strict$/);
  });

  it('changes nothing when it is called again, and keeps the settings if there are no new ones', async () => {
    const root = newRoot();
    await done(root, '--reserved', '0');
    const before = filesOf(root);
    const lines = await done(root);
    expect(lines.slice(0, 5)).toEqual(PATHS.map((path) => `unchanged ${root}/${path}`));
    expect(filesOf(root)).toEqual(before);
    expect((await done(root, '--reserved', '1'))[4]).toBe(`replaced ${root}/${FILES.bootUnit}`);
    expect(startOf(root)).toMatch(/ --reserved 1$/);
  });

  it('makes files that all users can read, whatever the umask', async () => {
    const root = newRoot();
    const umask = process.umask(0o077);
    try {
      await done(root, '--reserved', '0');
    } finally {
      process.umask(umask);
    }
    expect(PATHS.map((path) => statSync(join(root, path)).mode & 0o777)).toEqual(PATHS.map(() => 0o644));
  });

  it('removes temporary files of a killed call', async () => {
    const root = newRoot();
    const beside = join(root, `${FILES.slice}.new`);
    mkdirSync(dirname(beside), { recursive: true });
    writeFileSync(beside, 'half');
    await done(root);
    expect(existsSync(beside)).toBe(false);
    expect(readFileSync(join(root, FILES.slice), 'utf8')).toMatch(/^# Made by /);
  });

  it('shows by --dry-run what it would do, and does nothing', async () => {
    const root = newRoot();
    const before = filesOf(root);
    const lines = await done(root, '--dry-run', '--reserved', '0');
    expect(filesOf(root)).toEqual(before);
    const shown = lines.filter((line) => /^\S/.test(line));
    expect(shown.slice(0, 5)).toEqual(PATHS.map((path) => `make ${root}/${path}`));
    expect((await done(root, '--reserved', '0')).slice(5)).toEqual(
      shown.slice(5).map((line) => line.replace('run', 'ran')),
    );
    // The files are those that it showed.
    for (const path of PATHS) {
      const at = lines.indexOf(`make ${root}/${path}`) + 1;
      const text = readFileSync(join(root, path), 'utf8').trimEnd().split('\n');
      expect(lines.slice(at, at + text.length)).toEqual(text.map((line) => line && `    ${line}`));
    }
  });

  it('removes with --remove all that it has made, and nothing else', async () => {
    const root = newRoot();
    const before = filesOf(root);
    await done(root, '--reserved', '0');
    expect(Object.keys(filesOf(root)).length).toBe(Object.keys(before).length + 5);
    const planned = await done(root, '--remove', '--dry-run');
    const lines = await done(root, '--remove');
    expect(lines.length).toBe(planned.length);
    expect(lines).toContain(`removed ${root}/run/numalign`);
    expect(filesOf(root)).toEqual(before);
    expect(readdirSync(join(root, 'run'))).toEqual([]);
    expect(await done(root, '--remove')).toEqual(
      expect.arrayContaining(PATHS.map((path) => `missing: ${root}/${path}`)),
    );
  });

  it('leaves an edited file, and says so', async () => {
    const root = newRoot();
    await done(root, '--reserved', '0');
    appendFileSync(join(root, FILES.bootUnit), '# mine\n');
    const edited = readFileSync(join(root, FILES.bootUnit), 'utf8');
    expect(await done(root)).toContain(`kept, because it was edited: ${root}/${FILES.bootUnit}`);
    const { code, stdout } = await setup(root, '--reserved', '1');
    expect([code, stdout]).toEqual([
      1,
      expect.stringContaining(`kept, because it was edited: ${root}/${FILES.bootUnit}\n`),
    ]);
    expect(await done(root, '--remove')).toContain(`kept, because it was edited: ${root}/${FILES.bootUnit}`);
    expect(Object.entries(filesOf(root)).filter(([path]) => PATHS.includes(path))).toEqual([
      [FILES.bootUnit, edited],
    ]);
  });

  it.each([
    ['that has members', (text: string) => text.replace(/^(numalign:.*:)$/m, '$1web'), 'web is in it'],
    [
      'that is a user’s own',
      (text: string) => text.replace(/^numalign:x:\d+/m, 'numalign:x:1001'),
      'web is in it',
    ],
  ])('leaves a group %s, and says so', async (_which, change, why) => {
    const root = newRoot();
    await done(root);
    writeFileSync(join(root, 'etc/group'), change(groupsOf(root)));
    const { code, stderr } = await setup(root, '--remove');
    expect([code, stderr]).toEqual([0, `numalign: the group numalign stays: ${why}\n`]);
    expect(groupsOf(root)).toMatch(/^numalign:/m);
  });

  it('leaves a group that existed before, however often it was called', async () => {
    const root = newRoot();
    appendFileSync(join(root, 'etc/group'), 'numalign:x:1002:\n');
    await done(root);
    await done(root, '--reserved', '0');
    const { code, stderr } = await setup(root, '--remove');
    expect([code, stderr]).toEqual([0, 'numalign: the group numalign was there before, and stays\n']);
    expect(groupsOf(root)).toContain('numalign:x:1002:\n');
  });

  it('leaves a folder with a state in it to root', async () => {
    const root = newRoot();
    await done(root);
    writeFileSync(join(root, 'run/numalign/state.json'), '');
    const { code, stderr } = await setup(root, '--remove');
    expect([code, stderr]).toEqual([
      0,
      `numalign: ${root}/run/numalign has a state in it, and stays until the next boot\n`,
    ]);
    const { mode, gid } = statSync(join(root, 'run/numalign'));
    expect([mode & 0o7777, gid]).toEqual([0o2770, 0]);
    expect(groupsOf(root)).not.toContain('numalign');
  });

  const keysOf = (command: string) => {
    const [, help] = read('docs/reference/command-line.md').split(`\n## numalign ${command}\n`);
    const [, keys] = /\nJSON: ([\s\S]*?)\n\n/.exec(help!)!;
    return keys!.replace(/\([^)]*\)/g, '').match(/\w+/g);
  };

  it('prints one JSON document on request, with the documented keys', async () => {
    const root = newRoot();
    const { stdout } = await setup(root, '--reserved', '0', '--dry-run', '--output', 'json');
    const report = JSON.parse(stdout);
    expect(Object.keys(report)).toEqual(keysOf('setup'));
    expect(report.files.map(({ path, action }: Record<string, string>) => [path, action])).toEqual(
      PATHS.map((path) => [`${root}/${path}`, 'write']),
    );
    const removal = await numalign(['uninstall', '--root', root, '--dry-run', '--output', 'json']);
    expect(Object.keys(JSON.parse(removal.stdout))).toEqual(keysOf('uninstall'));
  });
});

describe.runIf(hasSystemd && isRoot)('numalign setup changes nothing, and says why, where', () => {
  const unprivileged = ['setpriv', '--reuid', '65534', '--clear-groups'] as const;
  const program = (...words: string[]) => [words[0]!, ...words.slice(1), process.execPath, MAIN] as const;

  it('this user may not write', async () => {
    const root = newRoot();
    chmodSync(root, 0o755);
    const before = filesOf(root);
    const { code, stderr } = await numalign(['setup', '--root', root], { program: program(...unprivileged) });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /cannot change .*sysusers\.d\/numalign\.conf .*EACCES.*run it as root.*\[ERR_SYSCALL\]/,
    );
    expect(filesOf(root)).toEqual(before);
  });

  it('a file is where a folder must be', async () => {
    const root = newRoot();
    writeFileSync(join(root, 'etc/systemd'), '');
    const before = filesOf(root);
    const { code, stderr } = await setup(root);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/ENOTDIR.*\[ERR_SYSCALL\]/)]);
    expect(filesOf(root)).toEqual(before);
  });

  it('there is no systemd', async () => {
    const root = newRoot();
    const before = filesOf(root);
    const { code, stderr } = await numalign(['setup', '--root', root], { env: { PATH: '/nowhere' } });
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/systemd-sysusers.* cannot be found: .*\[ERR_OPTIONAL_DEPENDENCY\]/),
    ]);
    expect(filesOf(root)).toEqual(before);
  });

  it('the root is not a folder', async () => {
    const { code, stderr } = await setup('/nowhere/at/all');
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/\/nowhere\/at\/all is not a folder \[ERR_INVALID_ARGUMENT\]/),
    ]);
  });

  it.each([
    [['--no-such-option'], /unknown option/],
    [['--reserved', 'x'], /reserved/],
    [['--remove', '--reserved', '0'], /'--reserved' cannot be used with option '--remove'/],
  ])('the command line is wrong: %j', async (args, message) => {
    const { code, stderr } = await setup(newRoot(), ...args);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });
});

describe.runIf(hasSystemd && isRoot)('numalign setup, where a program of systemd fails,', () => {
  it.each([
    ['etc/.pwd.lock', mkdirSync, /systemd-sysusers .*: .*lock.*; correct this, then run setup again/],
    [
      'run/numalign',
      (path: string) => writeFileSync(path, ''),
      /systemd-tmpfiles has not made \S+\/run\/numalign/,
    ],
  ])('names it with the reason, and finishes when it is called again: %s', async (path, put, message) => {
    const root = newRoot();
    put(join(root, path));
    const { code, stderr } = await setup(root, '--reserved', '0');
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)]);
    expect(stderr).toContain('[ERR_COMMAND_FAILED]');
    rmSync(join(root, path), { recursive: true });
    expect((await done(root)).slice(0, 5)).toEqual(PATHS.map((each) => `unchanged ${root}/${each}`));
    expect(statSync(join(root, 'run/numalign')).isDirectory()).toBe(true);
    expect(groupsOf(root)).toContain('numalign:');
  });
});
