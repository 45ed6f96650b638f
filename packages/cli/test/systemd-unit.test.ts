// needs: machine
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ROOT, read } from '../../../test/support/documents.js';
import { MAIN, newFolder, numalign, until } from './numalign.js';
import { canRunUnits, hasSystemd, runUnit, verify } from './systemd.js';

const unitOf = async (...args: string[]) => {
  const { code, stdout, stderr } = await numalign(['systemd-unit', ...args]);
  expect([code, stderr]).toEqual([0, '']);
  return stdout;
};
const settings = (unit: string, key: string) =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value);

describe('numalign systemd-unit', () => {
  it('has a help of one screen, which names the options of run without explaining them', async () => {
    const { stdout } = await numalign(['systemd-unit', '--help'], { env: { COLUMNS: '80' } });
    expect(stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(40);
    expect(stdout).toContain('every option of "numalign run"');
    expect(stdout).not.toContain('--isolation');
  });

  it('prints the unit of the examples', async () => {
    const unit = await unitOf(
      ...['--cpus', '2', '--name', 'gateway', '--user', 'gateway', '--working-directory', '/srv/gateway'],
      ...['--', '/srv/gateway/server', '--port', '8080'],
    );
    const example = unit
      .replaceAll(process.execPath, '/usr/bin/node')
      .replaceAll(MAIN, '/usr/lib/node_modules/@numalign/cli/dist/main.cjs');
    expect(example).toBe(read('examples/systemd/gateway.service'));
  });

  it('has the options of run word for word, in their order, with absolute paths', async () => {
    const unit = await unitOf(
      ...['--resource', 'hugepages-2Mi=64Mi', '--quiet', '--cpus', '1', '--wait', '--quiet=idle=20'],
      ...['--devices', 'devices.yaml', '--name', 'a', '--', './server', '--wait'],
    );
    expect(settings(unit, 'ExecStart')).toEqual([
      `${process.execPath} ${MAIN} run --resource hugepages-2Mi=64Mi --quiet --cpus 1 --wait --quiet=idle=20 ` +
        `--devices ${process.cwd()}/devices.yaml --name a -- ${process.cwd()}/server --wait`,
    ]);
    expect(settings(unit, 'WorkingDirectory')).toEqual([process.cwd()]);
  });

  it('is named after the program by default, so that it gets the same CPUs again', async () => {
    const unit = await unitOf('--cpus', '1', '--', 'node', 'app.mjs');
    expect(unit).toMatch(/^# \/etc\/systemd\/system\/node\.service\n/);
    expect(unit).toMatch(/ --cpus 1 --name node -- \/\S+\/node app\.mjs$/m);
  });

  it('has its description unchanged', async () => {
    const unit = await unitOf('--cpus', '1', '--description', 'a 100 % server', '--', '/srv/api');
    expect(settings(unit, 'Description')).toEqual(['a 100 %% server']);
  });

  it('makes a template whose instances have a grant each', async () => {
    const unit = await unitOf('--name', 'api@', '--cpus', '1', '--', '/srv/api');
    expect(unit).toMatch(/ run --cpus 1 --name api@%i -- \/srv\/api$/m);
    expect(settings(unit, 'Description')).toEqual(['api %i on its own CPUs']);
  });

  it('needs neither boot unit nor group for a private state', async () => {
    const unit = await unitOf('--cpus', '1', '--state-dir', 'state', '--user', 'web', '--', '/srv/api');
    expect(unit).not.toMatch(/^(Wants|After|SupplementaryGroups)=/m);
    expect(unit).toContain(` --state-dir ${process.cwd()}/state `);
  });

  it('gives back grants of the program in the state that it used', async () => {
    const command = ['--cpus', '1', '--name', 'api@', '--', '/srv/api'];
    const release = `-${process.execPath} ${MAIN} release --dead`;
    expect(settings(await unitOf(...command), 'ExecStopPost')).toEqual([release]);
    expect(settings(await unitOf('--state-dir', 'a $b', ...command), 'ExecStopPost')).toEqual([
      `${release} --state-dir "${process.cwd()}/a $$b"`,
    ]);
  });

  it('keeps a backslash in a name', async () => {
    const unit = await unitOf('--name', 'a\\x2db@', '--cpus', '1', '--', '/srv/api');
    expect(unit).toContain(' --name "a\\\\x2db@%i" -- /srv/api\n');
  });

  it.each(['john.doe', '0', '4294967294'])('is run by the user %s', async (user) => {
    const unit = await unitOf('--cpus', '1', '--user', user, '--', '/srv/api');
    expect(settings(unit, 'User')).toEqual([user]);
  });

  it('reports a program that is not found here', async () => {
    const { code, stdout, stderr } = await numalign(['systemd-unit', '--cpus', '1', '--', 'no-such-program']);
    expect([code, stderr]).toEqual([
      0,
      'numalign: warning: no-such-program is not found here: it must be in the PATH of the unit\n',
    ]);
    expect(stdout).toContain(' -- no-such-program\n');
  });

  it('prints one JSON document on request', async () => {
    const unit = JSON.parse(await unitOf('--cpus', '1', '--output', 'json', '--name', 'a', '--', '/srv/a'));
    expect(unit).toEqual({
      name: 'a.service',
      text: await unitOf('--cpus', '1', '--name', 'a', '--', '/srv/a'),
    });
  });

  it.each([
    ['a name that no unit can have', ['--cpus', '1', '--name', 'a b'], 1, /"a b" .*\[ERR_INVALID_ARGUMENT\]/],
    ['a name that is too long', ['--cpus', '1', '--name', 'a'.repeat(248)], 1, /\[ERR_INVALID_ARGUMENT\]/],
    ['an instance', ['--cpus', '1', '--name', 'a@b'], 1, /"a@b" .*\[ERR_INVALID_ARGUMENT\]/],
    [
      'the name of the boot unit',
      ['--cpus', '1', '--name', 'numalign'],
      1,
      /at boot \[ERR_INVALID_ARGUMENT\]/,
    ],
    [
      'a name with the suffix',
      ['--cpus', '1', '--name', 'a.service'],
      1,
      /without ".service".*\[ERR_INVALID_A/,
    ],
    ['no CPUs', [], 2, /'--cpus <n>' not specified/],
    ['an option that run has not', ['--cpuz', '1'], 2, /unknown option '--cpuz'\n.*--cpus/],
    ['a value that run refuses', ['--cpus', 'many'], 2, /whole number/],
    [
      'options of run that exclude each other',
      ['--cpus', '1', '--spread', '--align-l3'],
      2,
      /cannot be used/,
    ],
    ['lines in the description', ['--cpus', '1', '--description', 'a\nUser=b'], 2, /one line/],
    ['a folder that a unit cannot name', ['--cpus', '1', '--working-directory', '/a\\'], 2, /one line/],
    ['a user that cannot be', ['--cpus', '1', '--user', 'a b'], 2, /is not the name of a user/],
    ['a number that is no user', ['--cpus', '1', '--user', '65535'], 2, /is not the name of a user/],
    ['a number too big for a user', ['--cpus', '1', '--user', '4294967295'], 2, /is not the name of a user/],
    ['a folder without a name', ['--cpus', '1', '--working-directory', ''], 2, /It is empty/],
    ['a slice without a part', ['--cpus', '1', '--slice', 'a--b.slice'], 2, /numalign\.slice/],
    ['a slice that ends early', ['--cpus', '1', '--slice', 'a-.slice'], 2, /numalign\.slice/],
    ['no slice', ['--cpus', '1', '--slice', 'system'], 2, /numalign\.slice/],
    ['another type', ['--cpus', '1', '--type', 'forking'], 2, /exec, notify/],
  ])('refuses %s', async (_what, args, exitCode, message) => {
    const { code, stdout, stderr } = await numalign(['systemd-unit', ...args, '--', '/bin/true']);
    expect([code, stdout]).toEqual([exitCode, '']);
    expect(stderr).toMatch(message);
  });
});

describe('a unit with CPUs of its own', () => {
  const OPTIONS = ['--cpus', '2', '--partition', 'isolated=2-3', '--name', 'gateway'];
  const PRIVATE = ['--user', 'gateway', '--state-dir', '/run/gateway'];

  /** The unit where systemd is of this release. */
  async function unitWith(release: string | undefined, ...more: string[]) {
    const folder = newFolder();
    if (release !== undefined)
      writeFileSync(join(folder, 'systemctl'), `#!/bin/sh\necho 'systemd ${release} (${release}.1-1)'\n`, {
        mode: 0o755,
      });
    const args = ['systemd-unit', ...OPTIONS, ...PRIVATE, ...more, '--', '/srv/api'];
    return numalign(args, { env: { PATH: folder } });
  }

  it('is a partition where systemd can make one, outside of slices that are none', async () => {
    const { code, stdout, stderr } = await unitWith('261');
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('cpuset.cpus.partition in the cgroup of gateway'),
    ]);
    expect(settings(stdout, 'AllowedCPUs')).toEqual(['2-3']);
    expect(settings(stdout, 'CPUSetPartition')).toEqual(['isolated']);
    expect(settings(stdout, 'Slice')).toEqual(['-.slice']);
    expect(settings((await unitWith('262', '--slice', 'a.slice')).stdout, 'Slice')).toEqual(['a.slice']);
  });

  it.each([
    ['260', /systemd 260 is here, and CPUSetPartition= needs 261/],
    [undefined, /there is no systemd here/],
  ])('keeps to its CPUs with systemd %s, and says that others are not kept off', async (release, warning) => {
    const { code, stdout, stderr } = await unitWith(release);
    expect([code, stderr]).toEqual([0, expect.stringMatching(warning)]);
    expect(settings(stdout, 'AllowedCPUs')).toEqual(['2-3']);
    expect(stdout).not.toContain('CPUSetPartition');
  });

  it.each([
    ['without CPUs', ['--partition', 'root', ...PRIVATE], /such as isolated=2-3/],
    ['of no CPU', ['--partition', 'root=none', ...PRIVATE], /such as isolated=2-3/],
    ['of what is no list', ['--partition', 'root=2..3', ...PRIVATE], /"2\.\.3"/],
    ['of another type', ['--partition', 'member=2', ...PRIVATE], /such as isolated=2-3/],
    ["in the machine's state", ['--partition', 'root=2'], /needs --user and --state-dir/],
  ])('is refused %s', async (_what, args, message) => {
    const { code, stderr } = await numalign(['systemd-unit', '--cpus', '1', ...args, '--', '/bin/true']);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });
});

async function grantsIn(folder: string): Promise<object[]> {
  const { stdout } = await numalign(['status', '--state-dir', folder, '--output', 'json']);
  return JSON.parse(stdout).grants;
}

describe.runIf(hasSystemd)('systemd', () => {
  it('accepts units with every possible line', async () => {
    const words = ['$HOME', '%i', '"', "'", '\\', ' ', '', ';', '\n', 'é', '\u2028', '$' + '{A}', '-', '@x'];
    const units = {
      'gateway.service': await unitOf(
        ...['--cpus', '2', '--name', 'gateway', '--user', 'root', '--type', 'notify', '--restart', 'always'],
        ...[
          '--description',
          'a 100 % "quoted" $x',
          '--slice',
          'a-b.slice',
          '--working-directory',
          '/tmp/a b%c',
        ],
        ...['--', '/bin/true', ...words],
      ),
      'api@1.service': await unitOf('--cpus', '1', '--name', 'api@', '--', '/bin/true'),
    };
    expect(verify(units)).toBe('');
    expect(
      verify({ 'gateway.service': units['gateway.service'].replace('KillMode=mixed', 'KillMode=no') }),
    ).toMatch(/kill mode/);
  });

  it.runIf(canRunUnits)('starts the program on its CPU, with its arguments unchanged', async () => {
    const folder = newFolder();
    const out = join(folder, 'out');
    // No system call takes a NUL.
    const character = fc
      .integer({ min: 1, max: 0x10ffff })
      .filter((code) => code < 0xd800 || code > 0xdfff)
      .map((code) => String.fromCodePoint(code));
    const text = fc.string({ unit: fc.oneof(fc.constantFrom(...'$%{}"\'\\;\n\t \r#x@-'), character) });
    const words = fc.sample(text, { numRuns: 200, seed: 23 });
    const program = `
      const { renameSync, readFileSync, writeFileSync } = require('node:fs');
      const cpus = /Cpus_allowed_list:\\t(.*)/.exec(readFileSync('/proc/self/status', 'utf8'))[1];
      writeFileSync('${out}.new', JSON.stringify({ words: process.argv.slice(1), cpus, name: process.env.NUMALIGN_CPUS }));
      renameSync('${out}.new', '${out}');`;
    const unit = await unitOf(
      ...['--cpus', '1', '--reserved', '0', '--name', 'gateway', '--state-dir', join(folder, 'state')],
      ...['--working-directory', ROOT, '--', process.execPath, '-e', program, '--', ...words],
    );
    runUnit('gateway.service', unit);
    await until(() => existsSync(out), 'what the program writes');
    const report = JSON.parse(readFileSync(out, 'utf8'));
    expect(report.words).toEqual(words);
    expect(report.cpus).toBe(report.name);
    expect(report.cpus).not.toBe('0');
    await until(async () => (await grantsIn(join(folder, 'state'))).length === 0, 'the end of its grant');
  });

  it.runIf(canRunUnits)('counts it as started when the program says so, with --type notify', async () => {
    const folder = newFolder();
    const at = (name: string) => join(folder, name);
    const script = `: > start; while [ ! -e go ]; do sleep 0.05; done; systemd-notify --ready; exec sleep 1000`;
    const unit = await unitOf(
      ...['--cpus', '1', '--reserved', '0', '--state-dir', at('state'), '--type', 'notify'],
      ...['--working-directory', folder, '--name', 'gateway', '--', 'sh', '-c', script],
    );
    // A program that runs as soon as the unit is started.
    const post = `ExecStartPost=/bin/touch ${at('up')}`;
    runUnit('gateway.service', unit.replace('\n[Install]', `${post}\n\n[Install]`));
    await until(() => existsSync(at('start')), 'the start of the program');
    expect(existsSync(at('up'))).toBe(false);
    writeFileSync(at('go'), '');
    await until(() => existsSync(at('up')), 'the unit to be up');
  });
});
