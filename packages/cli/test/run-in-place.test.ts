// needs: process
// numalign run, which becomes its command.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openManager } from 'numalign';
import { describe, expect, it } from 'vitest';
import { budget } from '../../../test/support/budget.mjs';
import { makeStateDir } from '../../../test/support/state-dir.js';
import { endLater, endReapers, isRunning, MAIN, numalign, type Running, start, until } from './numalign.js';

const RUN = ['run', '--cpus', '1', '--state-dir'];
const ROUNDS = budget({ all: 100, usual: 4 });

interface StatusJson {
  grants: { uid: string; cpus: string; alive: boolean; owner: { pid: number; command: string } }[];
  sharedPool: string;
  sharedMembers: object[];
}

async function status(folder: string): Promise<StatusJson> {
  return JSON.parse((await numalign(['status', '--output', 'json', '--state-dir', folder])).stdout);
}

/** A folder in which only CPU 1 can be granted. */
async function folderOfOne(): Promise<string> {
  // Not from newFolder(), which removes it: a manager that is closed may be about to make its
  // folder again.
  const folder = makeStateDir();
  await numalign(['configure', '--managed', '0-1', '--reserved', '0', '--state-dir', folder]);
  return folder;
}

/** Resolved when the command has printed this. */
const printed = (run: Running, text: string) => until(() => run.output.stdout.includes(text), text);

const read = (pid: number | undefined, file: string) => readFileSync(`/proc/${pid}/${file}`, 'utf8');

/**
 * What a shell finds in /proc of itself and of its children, which depends on how it was started.
 */
const LOOK = `exec 2>&1
grep -E '^(Sig(Blk|Ign)|Umask)' /proc/self/status
for fd in 0 1 2; do echo "$fd $(( 0$(sed -n 's/^flags:[^0-9]*//p' /proc/$$/fdinfo/$fd) & 04000 ))"; done
for fd in /proc/$$/fd/*; do echo "open \${fd##*/} $(readlink $fd)"; done
cat /proc/$$/oom_score_adj; pwd; sleep 0`;

describe('numalign run, in place', () => {
  it('is its command: one process with the same id, which owns the grant', async () => {
    const folder = await folderOfOne();
    const run = start([...RUN, folder, '--', 'sh', '-c', 'echo $$; exec sleep 1000']);
    const { pid } = run.process;
    await printed(run, `${pid}\n`);
    await until(() => read(pid, 'cmdline') === 'sleep\u00001000\0', 'the command');
    expect(readdirSync(`/proc/${pid}/task`)).toEqual([`${pid}`]);
    expect(read(pid, 'status')).toMatch(/^Cpus_allowed_list:\t1$/m);
    const { grants, sharedMembers } = await status(folder);
    expect(grants).toMatchObject([{ cpus: '1', alive: true, owner: { pid, command: 'sh' } }]);
    expect(sharedMembers).toEqual([]);
    const refused = await numalign(['release', grants[0]!.uid, '--state-dir', folder]);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('[ERR_OWNER_ALIVE]')]);
    run.process.kill('SIGTERM');
    expect(await run.ended).toMatchObject({ code: null, signal: 'SIGTERM' });
    expect(await status(folder)).toMatchObject({ grants: [{ alive: false }] });
  });

  it('leaves the command its own descriptors and signals, and two of its grant', async () => {
    const folder = await folderOfOne();
    const inPlace = await numalign([...RUN, folder, '--silent', '--', 'sh', '-c', LOOK]);
    const plain = await start(['-c', LOOK], { program: ['sh'] }).ended;
    const linesOf = (text: string) =>
      text.split('\n').map((line) => line.replace(/(pipe|socket):\[\d+\]/, '$1'));
    const [expected, found] = [linesOf(plain.stdout), linesOf(inPlace.stdout)];
    // Node closes these in its children: numalign does not get them.
    const isPassed = (line: string) => !/^open (\d{2,}|[3-9]) /.test(line);
    // The lock, and what the reaper hears of the end by.
    const isOfGrant = (line: string) => !isPassed(line) && !expected.includes(line);
    expect(found.filter((line) => !isOfGrant(line))).toEqual(
      expected.filter((line) => isPassed(line) || found.includes(line)),
    );
    expect(found.filter(isOfGrant)).toEqual([
      expect.stringMatching(/pipe$/),
      expect.stringContaining('/owners/'),
    ]);
    expect(found.filter((line) => line.startsWith('Sig'))).toEqual([
      'SigBlk:\t0000000000000000',
      'SigIgn:\t0000000000000000',
    ]);
    expect(found).toEqual(expect.arrayContaining(['0 0', '1 0', '2 0']));
  });

  it('passes on the sockets that were opened for it, like systemd', async () => {
    const folder = await folderOfOne();
    const file = join(folder, 'file');
    writeFileSync(file, 'passed');
    const line = `exec env LISTEN_PID=$$ LISTEN_FDS=1 "$@" 3<${file}`;
    const { code, stdout } = await start(
      [...RUN, folder, '--', 'sh', '-c', 'echo $(( LISTEN_PID == $$ )); cat <&3'],
      { program: ['sh', '-c', line, 'sh', process.execPath, MAIN] },
    ).ended;
    expect([code, stdout]).toEqual([0, '1\npassed']);
  });

  it('passes on nothing if sockets were opened for another process', async () => {
    const folder = await folderOfOne();
    const line = `exec env LISTEN_PID=1 LISTEN_FDS=13 "$@" 3</dev/null`;
    const { code, stdout } = await start(
      [...RUN, folder, '--silent', '--', 'sh', '-c', 'for fd in /proc/$$/fd/*; do readlink $fd; done'],
      { program: ['sh', '-c', line, 'sh', process.execPath, MAIN] },
    ).ended;
    const others = stdout.split('\n').filter((file) => !/^pipe:|^socket:|^\/proc\/|^$/.test(file));
    expect([code, others]).toEqual([0, [expect.stringContaining('/owners/')]]);
  });

  it('is the main process, whose notification a service manager awaits', async () => {
    const folder = await folderOfOne();
    const socket = join(folder, 'notify');
    const listening = `import socket, struct, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
listener.bind(sys.argv[1])
print('listens', flush=True)
data, ancillary, _, _ = listener.recvmsg(1000, socket.CMSG_SPACE(12))
print(struct.unpack('3i', ancillary[0][2])[0], data.decode())`;
    const telling = `import os, socket
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'READY=1', os.environ['NOTIFY_SOCKET'])`;
    const listener = start(['-c', listening, socket], { program: ['python3'] });
    await printed(listener, 'listens\n');
    // systemd accepts it only from the main process, which is the one that it has started.
    const run = start([...RUN, folder, '--', 'python3', '-c', telling], { env: { NOTIFY_SOCKET: socket } });
    expect((await run.ended).code).toBe(0);
    expect((await listener.ended).stdout).toBe(`listens\n${run.process.pid} READY=1\n`);
  });

  it.runIf(process.geteuid?.() === 0)('is the first process of a pid namespace', async () => {
    const folder = await folderOfOne();
    const script = 'trap "exit 5" TERM; echo $$; kill -TERM $$';
    const { code, stdout } = await start([...RUN, folder, '--', 'sh', '-c', script], {
      program: ['unshare', '--pid', '--fork', '--mount-proc', process.execPath, MAIN],
    }).ended;
    expect([code, stdout]).toEqual([5, '1\n']);
    expect(await status(folder)).toMatchObject({ grants: [{ cpus: '1', alive: false }] });
  });

  it('tells its command how many threads to start on request, in place and beside it', async () => {
    const folder = await folderOfOne();
    const script = 'echo "$OMP_NUM_THREADS $GOMAXPROCS"';
    const counts = (...options: string[]) =>
      numalign(['run', ...options, ...RUN.slice(1), folder, '--silent', '--', 'sh', '-c', script]);
    expect((await counts()).stdout).toBe(' \n');
    expect((await counts('--thread-counts', 'auto')).stdout).toBe('1 1\n');
    expect((await counts('--thread-counts', 'auto', '--supervise')).stdout).toBe('1 1\n');
  });

  it('keeps the CPUs for processes that its command leaves running', async () => {
    const folder = await folderOfOne();
    const run = start([...RUN, folder, '--', 'sh', '-c', 'sleep 1000 >/dev/null 2>&1 & echo $!']);
    expect((await run.ended).code).toBe(0);
    const pid = Number(run.output.stdout);
    const [grant] = (await status(folder)).grants;
    expect(grant).toMatchObject({ cpus: '1', alive: true });
    endLater(pid, `NUMALIGN_GRANT=${grant!.uid}`);
    expect((await numalign([...RUN, folder, '--', 'true'])).code).toBe(1);
    process.kill(pid, 'SIGKILL');
    await until(() => !isRunning(pid), 'its end');
    expect((await numalign([...RUN, folder, '--', 'true'])).code).toBe(0);
  });

  it('gives the CPUs back to the shared pool of a process with an open state when its command ends', async () => {
    const folder = await folderOfOne();
    const manager = await openManager({ stateDir: folder });
    const pools: string[] = [];
    manager.on('change', ({ sharedPool }) => pools.push(`${sharedPool}`));
    try {
      expect((await numalign([...RUN, folder, '--', 'true'])).code).toBe(0);
      await until(() => pools.at(-1) === '0-1', 'the CPU in the shared pool');
      expect(manager.grants()).toEqual([]);
    } finally {
      manager.close();
    }
  });

  it('prints its grant before its command begins, however late that is read', async () => {
    const folder = await folderOfOne();
    const door = join(folder, 'door');
    execFileSync('mkfifo', [door]);
    // A pipe that is full when numalign writes to it.
    const line = '{ head -c 65536 /dev/zero >&2; "$@"; } 2>&1 >/dev/null | { read -r _ <"$0"; tr -d "\\0"; }';
    const run = start([...RUN, folder, '--', 'true'], {
      program: ['sh', '-c', line, door, process.execPath, MAIN],
    });
    await until(async () => (await status(folder)).grants.length === 1, 'the grant');
    writeFileSync(door, 'open\n');
    expect(await run.ended).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^numalign: CPU 1 on .*\n$/),
    });
  });

  it('prints its grant, and releases it if the kernel refuses to execute the command', async () => {
    const folder = await folderOfOne();
    const file = join(folder, 'script');
    writeFileSync(file, '#!/no/such/interpreter\n', { mode: 0o700 });
    const { code, stderr } = await numalign([...RUN, folder, '--', file]);
    expect(code).toBe(127);
    expect(stderr).toMatch(/^numalign: CPU 1 on .*\nnumalign: .*: not found \(it, or the interpreter/);
    expect((await status(folder)).grants).toEqual([]);
    // A file that is no program runs in a shell, as with execvp(3).
    writeFileSync(file, 'echo "$0" ran\n');
    expect(await numalign([...RUN, folder, '--silent', '--', file])).toMatchObject({
      code: 0,
      stdout: `${file} ran\n`,
    });
  });

  it('releases CPUs together with its command, unlike --supervise', async () => {
    const folder = await folderOfOne();
    const script =
      'import os; print("runs", flush=True); os.read(0, 1); os.closerange(3, 1000); print("closed", flush=True); os.read(0, 1)';
    const isAlive = async (options: string[]) => {
      const run = start(['run', ...options, ...RUN.slice(1), folder, '--', 'python3', '-c', script]);
      await printed(run, 'runs\n');
      endReapers(folder);
      run.process.stdin!.write('\n');
      await printed(run, 'runs\nclosed\n');
      const { alive } = (await status(folder)).grants[0]!;
      run.process.stdin!.end('\n');
      await run.ended;
      return alive;
    };
    expect(await isAlive([])).toBe(false);
    expect(await isAlive(['--supervise'])).toBe(true);
  });

  it('loses no CPU and grants none twice, however often its command is killed', async () => {
    const folder = await folderOfOne();
    const running: Running[] = [];
    const begin = () => {
      const run = start([...RUN, folder, '--wait', '--', 'sh', '-c', 'echo up; exec sleep 1000']);
      running.push(run);
    };
    const isUp = ({ output }: Running) => output.stdout.includes('up\n');
    begin();
    for (let round = 0; round < ROUNDS; round++) {
      begin();
      const up = await until(() => running.find(isUp), 'a command with the CPU');
      // At any moment of the other's start, or while it waits.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 300));
      expect(running.filter(isUp)).toEqual([up]);
      running.splice(running.indexOf(up), 1);
      const killed = round % 4 === 3 ? [up, ...running.splice(0)] : [up];
      for (const each of killed) each.process.kill('SIGKILL');
      await Promise.all(killed.map(({ ended }) => ended));
      if (running.length === 0) begin();
    }
    await until(() => running.find(isUp), 'the last command');
    for (const each of running) each.process.kill('SIGKILL');
    await Promise.all(running.map(({ ended }) => ended));
    const { stdout } = await numalign([...RUN, folder, '--silent', '--', 'sh', '-c', 'echo $NUMALIGN_CPUS']);
    expect(stdout).toBe('1\n');
    const manager = await openManager({ stateDir: folder });
    expect([`${manager.sharedPool()}`, manager.grants()]).toEqual(['0-1', []]);
    manager.close();
  });
});

describe('numalign run --no-supervise', () => {
  it('is its command even if it may change settings of the machine', async () => {
    const folder = await folderOfOne();
    const options = ['--quiet', 'packets', '--no-supervise'];
    const run = start(['run', ...options, ...RUN.slice(1), folder, '--', 'sh', '-c', 'echo $$']);
    expect((await run.ended).stdout).toBe(`${run.process.pid}\n`);
    const beside = start(['run', '--quiet', 'packets', ...RUN.slice(1), folder, '--', 'sh', '-c', 'echo $$']);
    expect((await beside.ended).stdout).not.toBe(`${beside.process.pid}\n`);
  });
});
