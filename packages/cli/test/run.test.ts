// needs: agents
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { discover } from 'numalign/topology';
import { describe, expect, it } from 'vitest';
import { firstAndAnother } from '../../../test/support/budget.mjs';
import {
  endLater,
  isRunning,
  MAIN,
  newFolder,
  numalign,
  type Running,
  runHere,
  start,
  until,
} from './numalign.js';

// With CPU 0 reserved, a machine of two CPUs has one to grant.
const RUN = ['run', '--cpus', '1', '--reserved', '0', '--state-dir'];
const SUPERVISE = ['run', '--supervise', ...RUN.slice(1)];

const [core, another] = (await discover()).cores;

interface StatusJson {
  grants: { uid: string; cpus: string; alive: boolean; owner: { pid: number } }[];
}

async function grants(folder: string): Promise<StatusJson['grants']> {
  const { stdout } = await numalign(['status', '--output', 'json', '--state-dir', folder]);
  return (JSON.parse(stdout) as StatusJson).grants;
}

// Takes all CPUs except one, so that on any machine a second run finds none.
async function leaveOneFree(folder: string): Promise<void> {
  await numalign(['configure', '--managed', '0-1', '--reserved', '0', '--state-dir', folder]);
}

/** The pid that the command itself printed first. */
async function printedPid({ output }: Running): Promise<number> {
  const pid = await until(() => /^(\d+)\n/.exec(output.stdout)?.[1], 'the pid of the command');
  const mark = await until(() => /grant ([0-9a-f-]{36})/.exec(output.stderr)?.[1], 'the line of numalign');
  endLater(Number(pid), `NUMALIGN_GRANT=${mark}`);
  return Number(pid);
}

describe('numalign run', () => {
  it('runs the command on the granted CPU, names it in the environment, and gives it back', async () => {
    const folder = newFolder();
    await leaveOneFree(folder);
    const script = 'grep Cpus_allowed_list /proc/self/status; echo "$NUMALIGN_CPUS $NUMALIGN_GRANT"';
    const { code, stdout, stderr } = await numalign([
      ...RUN,
      folder,
      '--name',
      'job',
      '--',
      'sh',
      '-c',
      script,
    ]);
    const [, cpus, id] =
      /^numalign: CPU (\d+) on NUMA node \d+ \(members\), grant ([0-9a-f-]{36})\n$/.exec(stderr) ?? [];
    expect(cpus).toBe('1');
    expect(code).toBe(0);
    expect(stdout).toBe(`Cpus_allowed_list:\t1\n1 ${id}\n`);
    // The next opener of the state takes it back.
    expect(await grants(folder)).toMatchObject([{ uid: id, alive: false }]);
    expect(
      (await numalign([...RUN, folder, '--silent', '--', 'sh', '-c', 'echo $NUMALIGN_CPUS'])).stdout,
    ).toBe('1\n');
  });

  it('books memory and takes devices, names them to the command, and binds its memory to the grant’s NUMA nodes', async () => {
    const folder = newFolder();
    await leaveOneFree(folder);
    const devices = join(newFolder(), 'devices.json');
    writeFileSync(
      devices,
      JSON.stringify({ 'example.com/nic': [{ id: 'eth0', numaNodes: [0] }, { id: 'eth1' }] }),
    );
    const script = 'grep stack /proc/self/numa_maps; echo "$NUMALIGN_DEVICES"';
    const { code, stdout, stderr } = await numalign([
      ...RUN,
      folder,
      ...['--memory', '64Mi', '--resource', 'example.com/nic=1', '--devices', devices],
      ...['--', 'sh', '-c', script],
    ]);
    expect(stderr).toMatch(
      /^numalign: CPU 1 on NUMA node (\d+) \(members\), 64 MiB on \1, example.com\/nic eth0, grant /,
    );
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^\w+ prefer[^ ]*:\d+ .*\n\{"example.com\/nic":\["eth0"\]\}\n$/),
    ]);
    const wrong = await numalign([...RUN, folder, '--resource', 'nic', '--', 'true']);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('hugepages-2Mi=64Mi')]);
  });

  it('prints the grant as a line of JSON on stderr, and nothing with --silent', async () => {
    const folder = newFolder();
    await leaveOneFree(folder);
    const args = ['--output', 'json', '--name', 'job', '--', 'sh', '-c', 'echo $NUMALIGN_GRANT'];
    const { code, stdout, stderr } = await numalign([...RUN, folder, ...args]);
    expect(code).toBe(0);
    expect(stderr).toMatch(/^[^\n]*\n$/);
    expect(JSON.parse(stderr)).toMatchObject({
      uid: stdout.trim(),
      name: 'job',
      cpus: '1',
      enforcement: 'members',
    });
    expect(await numalign([...RUN, folder, '--silent', ...args])).toMatchObject({ code: 0, stderr: '' });
  });

  it('leaves the granted CPU itself if it stays beside the command', async () => {
    const folder = newFolder();
    await leaveOneFree(folder);
    const run = start([...SUPERVISE, folder, '--', 'sh', '-c', 'echo $$; exec sleep 1000']);
    await printedPid(run);
    const tasks = `/proc/${run.process.pid}/task`;
    const allowed = () =>
      readdirSync(tasks).map(
        (tid) => /Cpus_allowed_list:\t(.*)/.exec(readFileSync(`${tasks}/${tid}/status`, 'utf8'))?.[1],
      );
    // A moment after the command's birth, whose first mask is that of the thread that starts it.
    await until(() => allowed().every((cpus) => cpus === '0'), 'all threads on the shared pool');
    run.process.kill('SIGTERM');
    await run.ended;
  });

  it('passes on everything after the command unchanged', async () => {
    const args = [
      ...RUN,
      newFolder(),
      '--silent',
      '--',
      'printf',
      '%s|',
      '--cpus',
      '--help',
      '--',
      'a b',
      '',
    ];
    expect(await numalign(args)).toMatchObject({ code: 0, stdout: '--cpus|--help|--|a b||', stderr: '' });
    const without = [...RUN, newFolder(), '--silent', 'printf', '%s|', '--cpus', '--', 'x'];
    expect(await numalign(without)).toMatchObject({ code: 0, stdout: '--cpus|--|x|', stderr: '' });
  });

  it('exits with the code of the command', async () => {
    const folder = newFolder();
    for (const command of [RUN, SUPERVISE]) {
      expect((await numalign([...command, folder, '--', 'true'])).code).toBe(0);
      expect((await numalign([...command, folder, '--', 'sh', '-c', 'exit 7'])).code).toBe(7);
    }
    expect(await grants(folder)).toEqual([]);
  });

  it.each([
    ['in place', RUN, 'ENOTDIR'],
    ['beside it', SUPERVISE, 'spawn ENOTDIR'],
  ])(
    'exits with 127 where the command is not found and 126 where it is not executable, and releases: %s',
    async (_, command, notFolder) => {
      const folder = newFolder();
      const text = join(folder, 'text');
      writeFileSync(text, 'no program', { mode: 0o600 });
      const missing = await numalign([...command, folder, '--', 'no-such-command']);
      expect(missing.code).toBe(127);
      expect(missing.stderr).toBe(
        'numalign: no-such-command: not found (it, or the interpreter that it names)\n',
      );
      const closed = await numalign([...command, folder, '--', text]);
      expect(closed.code).toBe(126);
      expect(closed.stderr).toBe(`numalign: ${text}: not executable (permission denied)\n`);
      const below = await numalign([...command, folder, '--', join(text, 'program')]);
      expect(below.code).toBe(126);
      expect(below.stderr).toBe(`numalign: ${text}/program: cannot be executed: ${notFolder}\n`);
      const empty = await numalign([...command, folder, '--', '']);
      expect(empty.code).toBe(126);
      expect(empty.stderr).toMatch(/^numalign: : cannot be executed: .*\n$/);
      expect(await grants(folder)).toEqual([]);
    },
  );

  it.each(firstAndAnother(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGPIPE'] as const))(
    'dies of %s where the command did, after the release',
    async (name) => {
      const folder = newFolder();
      const { signal } = await numalign([
        ...SUPERVISE,
        folder,
        '--',
        'sh',
        '-c',
        `kill -${name.slice(3)} $$`,
      ]);
      expect(signal).toBe(name);
      expect(await grants(folder)).toEqual([]);
    },
  );

  it('reports a death that dumps core by its exit code, and dumps none itself', async () => {
    const { code, signal } = await numalign([
      ...SUPERVISE,
      newFolder(),
      '--',
      'sh',
      '-c',
      'ulimit -c 0; kill -SEGV $$',
    ]);
    expect({ code, signal }).toEqual({ code: 128 + 11, signal: null });
  });

  const SENT = [
    'SIGTERM',
    'SIGHUP',
    'SIGINT',
    'SIGQUIT',
    'SIGUSR1',
    'SIGUSR2',
    'SIGCONT',
    'SIGWINCH',
  ] as const;
  it.each(firstAndAnother(SENT))('sends %s on to the command', async (name) => {
    const folder = newFolder();
    // A `wait` is ended by the signal, the trap runs at once; sleep is ended by its pid.
    const script = `trap 'echo got; kill $s; exit 5' ${name.slice(3)}; sleep 1000 & s=$!; echo $$; wait`;
    const run = start([...SUPERVISE, folder, '--', 'sh', '-c', script]);
    await printedPid(run);
    run.process.kill(name);
    const { code, stdout } = await run.ended;
    expect(code).toBe(5);
    expect(stdout).toMatch(/got\n$/);
  });

  it.skipIf(!existsSync('/usr/bin/script'))(
    'leaves a typed interrupt to the terminal, which has delivered it already',
    async () => {
      const folder = newFolder();
      const script = join(folder, 'command.mjs');
      writeFileSync(
        script,
        `let count = 0;
        process.on('SIGINT', () => console.log('interrupts: ' + ++count));
        process.on('SIGUSR1', () => process.exit(count));
        setInterval(() => {}, 1000);
        console.log('ready');`,
      );
      const line = [
        'exec',
        process.execPath,
        MAIN,
        ...SUPERVISE,
        folder,
        '--silent',
        '--',
        process.execPath,
        script,
      ].join(' ');
      const run = start([], { program: ['/usr/bin/script', '-qec', line, '/dev/null'] });
      await until(() => run.output.stdout.includes('ready'), 'the command');
      run.process.stdin?.write('\u0003');
      await until(() => run.output.stdout.includes('interrupts: 1'), 'the interrupt');
      // A signal that only numalign gets counts as a typed one too: the two look the same.
      const { pid } = (await grants(folder))[0]!.owner;
      process.kill(pid, 'SIGINT');
      process.kill(pid, 'SIGUSR1');
      expect((await run.ended).code).toBe(1);
    },
  );

  it('refuses a second run while the first holds the only CPU, and names the holder', async () => {
    const folder = newFolder();
    await leaveOneFree(folder);
    const first = start([...RUN, folder, '--name', 'first', '--', 'sh', '-c', 'echo $$; exec sleep 1000']);
    await printedPid(first);
    const second = await numalign([...RUN, folder, '--', 'true']);
    expect(second.code).toBe(1);
    // On several lines, like in plan and admit.
    expect(second.stderr).toMatch(
      /^numalign: 1 exclusive CPU requested: none is free\ncpu: free by NUMA node: .* \[ERR_INSUFFICIENT_CPUS\]\n$/s,
    );
    expect(second.stderr).toContain(`\n  held by "first" of process ${first.process.pid}: 1\n`);
    first.process.kill('SIGTERM');
    expect((await first.ended).signal).toBe('SIGTERM');
    expect((await numalign([...RUN, folder, '--', 'true'])).code).toBe(0);
  });

  it('keeps the grant for the command when it is killed itself, until the command ends', async () => {
    const folder = newFolder();
    await leaveOneFree(folder);
    const run = start([...SUPERVISE, folder, '--', 'sh', '-c', 'echo $$; exec sleep 1000']);
    const pid = await printedPid(run);
    run.process.kill('SIGKILL');
    await run.ended;
    expect(isRunning(pid)).toBe(true);
    expect(await grants(folder)).toMatchObject([{ cpus: '1', alive: true }]);
    expect((await numalign([...RUN, folder, '--', 'true'])).code).toBe(1);

    process.kill(pid, 'SIGKILL');
    await until(async () => (await grants(folder))[0]?.alive === false, 'the death of the grant');
    expect((await numalign(['status', '--state-dir', folder])).stdout).toContain(
      'dead: taken back at the next transaction',
    );
    expect((await numalign([...SUPERVISE, folder, '--', 'true'])).code).toBe(0);
    expect(await grants(folder)).toEqual([]);
  });

  it('leaves the grant to processes that the command left running, and says so', async () => {
    const folder = newFolder();
    await leaveOneFree(folder);
    const run = start([...SUPERVISE, folder, '--', 'sh', '-c', 'sleep 1000 >/dev/null 2>&1 & echo $!']);
    const pid = await printedPid(run);
    const { code, stderr } = await run.ended;
    expect(code).toBe(0);
    const [grant] = await grants(folder);
    expect(grant).toMatchObject({ cpus: '1', alive: true });
    expect(stderr).toContain(
      `numalign: sh left processes running; grant ${grant?.uid} ends with the last of them\n`,
    );

    process.kill(pid, 'SIGKILL');
    await until(async () => (await grants(folder))[0]?.alive === false, 'the death of the grant');
    expect((await numalign([...RUN, folder, '--', 'true'])).code).toBe(0);
  });

  it.skipIf(!another)('accepts a policy, and holds the other threads of its cores', async () => {
    const folder = newFolder();
    // A whole core beside a reserved one.
    const managed = `${core!.cpus.union(another!.cpus)}`;
    await numalign(['configure', '--managed', managed, '--reserved', `${core!.cpus}`, '--state-dir', folder]);
    const flags = ['--policy', 'single-numa-node', '--smt', 'hold-sibling'];
    const script = 'cat "$0/state.json"';
    const own = ['run', '--cpus', '1', '--state-dir', folder, ...flags];
    const { code, stdout } = await numalign([...own, '--', 'sh', '-c', script, folder]);
    expect(code).toBe(0);
    const [pod] = JSON.parse(stdout.trimEnd().split('\n').at(-1)!).pods;
    expect(pod).toMatchObject({ policy: 'single-numa-node', options: { 'hold-sibling': true } });
  });

  it('refuses settings that differ from those recorded', async () => {
    const folder = newFolder();
    await numalign(['configure', '--reserved', 'none', '--state-dir', folder]);
    const { code, stderr } = await numalign([...RUN, folder, '--', 'true']);
    expect(code).toBe(1);
    expect(stderr).toContain('[ERR_CONFIG_CONFLICT]');
  });

  it('asks which devices are meant if no manager gives them out', async () => {
    const { code, stderr } = await numalign([
      ...RUN,
      newFolder(),
      '--resource',
      'example.com/nic=1',
      '--',
      'true',
    ]);
    expect([code, stderr]).toEqual([
      1,
      'numalign: example.com/nic is not registered here: say which devices it is, such as --device example.com/nic=class:0200 [ERR_INVALID_OPTION]\n',
    ]);
  });

  it('books a fraction of the shared pool with --mixed, and runs the command on the whole CPUs', async () => {
    const folder = newFolder();
    await numalign(['configure', '--managed', '0-1', '--state-dir', folder]);
    const script =
      'grep Cpus_allowed_list /proc/self/status; echo "$NUMALIGN_CPUS $NUMALIGN_MIXED"; read -r _';
    const run = ['run', '--cpus', '1.25', '--mixed', '--state-dir', folder, '--', 'sh', '-c', script];
    const { process: command, output, ended } = start(run);
    await until(() => output.stdout.endsWith(' 0.25\n'), 'the output of the command');
    const [, cpu] = /^numalign: CPU (\d) \+ 0\.25 shared on NUMA node/.exec(output.stderr) ?? [];
    expect(output.stdout).toBe(`Cpus_allowed_list:\t${cpu}\n${cpu} 0.25\n`);
    const status = await numalign(['status', '--state-dir', folder]);
    expect(status.stdout).toContain(`${cpu} + 0.25 shared`);
    expect(await grants(folder)).toMatchObject([{ cpus: cpu, mixed: 0.25 }]);
    command.stdin!.end();
    await ended;
  });

  it('stays beside a movable command, and answers for it', async () => {
    const folder = newFolder();
    await numalign(['configure', '--managed', '0-1', '--state-dir', folder]);
    const script = `console.log(require('fs').readFileSync('/proc/' + process.ppid + '/cmdline', 'utf8'))`;
    const run = ['run', '--cpus', '1', '--movable', 'notice=1s', '--state-dir', folder, '--'];
    const { stdout } = await numalign([...run, process.execPath, '-e', script]);
    expect(stdout).toContain('--movable\0notice=1s');
    expect(await grants(folder)).toEqual([]);
  });

  it('gets as many CPUs of a range as there is room for, and stays beside the command', async () => {
    const folder = newFolder();
    await numalign(['configure', '--managed', '0-1', '--state-dir', folder]);
    const run = [
      'run',
      '--cpus',
      '1..2',
      '--weight',
      '7',
      '--state-dir',
      folder,
      '--',
      'sh',
      '-c',
      'echo $PPID',
    ];
    const running = start(run);
    const { code, stdout, stderr } = await running.ended;
    expect([code, stdout]).toEqual([0, `${running.process.pid}\n`]);
    expect(stderr).toMatch(/^numalign: CPU \d of 1\.\.2 on NUMA node/);
  });

  it('suggests another folder if its own is closed', async () => {
    const file = join(newFolder(), 'file');
    writeFileSync(file, '');
    const { code, stderr } = await numalign(['run', '--cpus', '1', '--state-dir', file, '--', 'true']);
    expect(code).toBe(1);
    expect(stderr).toContain('[ERR_STATE_FOLDER]');
    expect(stderr).toContain('--state-dir DIR');
  });

  it.each([
    [['--cpus', '0', '--', 'true'], 'whole number of CPUs'],
    [['--cpus', '1.5', '--', 'true'], 'whole number of CPUs, at least 1. With --mixed it may be a fraction.'],
    [['--cpus', '0.5', '--mixed', '--', 'true'], 'whole number of CPUs'],
    [
      ['--cpus', '1', '--memory', 'lots', '--', 'true'],
      "option '--memory <quantity>' argument 'lots' is invalid. It must be a quantity",
    ],
    [['--cpus', '1', '--memory', '-1', '--', 'true'], 'It must be zero or more.'],
    [['--cpus', '1', '--resource', 'hugepages-2Mi=many', '--', 'true'], 'It must be a quantity'],
    [['--cpus', '4..2', '--', 'true'], 'from the least to the most CPUs, at least 1, such as 2..8'],
    [['--cpus', '2..', '--', 'true'], 'from the least to the most CPUs, at least 1, such as 2..8'],
    [['--cpus', '0..2', '--', 'true'], 'from the least to the most CPUs, at least 1, such as 2..8'],
    [['--cpus', '2', '--weight', '7', '--', 'true'], "'--weight <n>' requires a range of CPUs"],
    [['--cpus', '1..2', '--weight', '0', '--', 'true'], 'whole number from 1 to 10000'],
    [['--cpus', '1..2', '--mixed', '--', 'true'], "'--mixed' cannot be used with a range of CPUs"],
    [['--cpus', '1..2', '--no-supervise', '--', 'true'], 'cannot be used with a range of CPUs'],
    [['--', 'true'], "required option '--cpus <n>' not specified"],
    [['--cpu', '1', '--', 'true'], 'Did you mean --cpus?'],
    [['--cpus', '1'], "missing required argument 'command'"],
    [
      ['--cpus', '1', '--reserved', '0-', '--', 'true'],
      "option '--reserved <list>' argument '0-' is invalid",
    ],
    [['--cpus', '1', '--spread', '--distribute', '--', 'true'], 'cannot be used with'],
    [['--cpus', '1', '--policy', 'strict', '--', 'true'], 'Allowed choices are none, best-effort'],
    [['--cpus', '1', '--smt', 'off', '--', 'true'], 'Allowed choices are hold-sibling.'],
  ])('calls %j a wrong command line', async (args, message) => {
    // Refused before it does anything, as a program and in this process.
    const { code, stderr } = await runHere(['run', ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});
