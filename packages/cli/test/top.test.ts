// needs: folders
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CpuSet, type Grant, openManager } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { makeStateDir } from '../../../test/support/state-dir.js';
import { MAIN, newFolder, numalign, type Running, start, until } from './numalign.js';

const TERMINAL = fileURLToPath(new URL('../../../test/support/terminal.py', import.meta.url));
const [ENTER, LEAVE] = ['\u001b[?1049h\u001b[?25l\u001b[?7l', '\u001b[?7h\u001b[?25h\u001b[?1049l'];
const [CTRL_C, CTRL_Z, CTRL_BACKSLASH] = [3, 26, 28];

async function acquire(name: string): Promise<{ stateDir: string; grant: Grant }> {
  const stateDir = makeStateDir();
  const manager = await openManager({ stateDir });
  const grant = await manager.acquire({ cpu: 1, name });
  onTestFinished(async () => {
    await grant.release();
    manager.close();
  });
  return { stateDir, grant };
}

/** On a terminal of its own, in a shell that prints the terminal's settings before and after. */
function onTerminal(stateDir: string, ...args: string[]): Running {
  const script = `trap : INT QUIT TERM; stty -g; "$@"; echo "code $?"; stty -g`;
  const command = [process.execPath, MAIN, 'top', '--interval', '60', '--state-dir', stateDir, ...args];
  return start(command, {
    program: ['python3', TERMINAL, '80', '24', '--', 'sh', '-c', script, 'sh'],
    env: { TERM: 'xterm', NO_COLOR: '1' },
  });
}

const order = ({ process: child }: Running, text: string) => child.stdin!.write(`${text}\n`);
const type = (running: Running, key: string | number) =>
  order(running, `type ${typeof key === 'string' ? key.charCodeAt(0) : key}`);

/** The pages that it has drawn completely. */
const pages = ({ output }: Running) =>
  output.stdout
    .split('\u001b[H')
    .slice(1)
    .filter((page) => page.includes('\u001b[J'))
    .map((page) => page.replaceAll('\u001b[K', '').replaceAll('\u001b[J', '').split('\r\n'));

const drawn = (running: Running, pattern: RegExp) =>
  until(() => pages(running).findLast((lines) => lines.some((line) => pattern.test(line))), `${pattern}`);

/** The process of numalign below the shell on the terminal. */
const pidBelow = (pid: number): number => {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
  return child === undefined ? pid : pidBelow(Number(child));
};

const stateOf = (pid: number) => /^State:\t(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1];

/** What the shell says at the end: the exit code, and whether the settings are those from before. */
async function atEnd({ ended }: Running) {
  const { stdout } = await ended;
  const [before, ...lines] = stdout.split('\r\n').filter((line) => /^[0-9a-f:]{30,}$|^code /.test(line));
  expect(stdout.lastIndexOf(LEAVE)).toBeGreaterThan(stdout.lastIndexOf(ENTER));
  expect(lines).toEqual([expect.stringMatching(/^code \d+$/), before]);
  return lines[0];
}

describe('numalign top on a terminal', () => {
  it('draws in 80 columns and 24 lines, sorts by a key, follows a resize, and ends at q', async () => {
    const { stateDir } = await acquire('gateway');
    const running = onTerminal(stateDir);
    const first = await drawn(running, /^gateway /);
    expect(first.length).toBeLessThanOrEqual(24);
    expect(first.filter((line) => line.length > 80)).toEqual([]);
    expect(first.join('\n')).toMatch(/^shared: .*, sorted by delay\n\[q\]uit \[n\]ame /m);
    // Without colours.
    expect(running.output.stdout).not.toMatch(/\[\d+m/);
    type(running, 'i');
    await drawn(running, /sorted by involuntary$/);
    type(running, 'i');
    await drawn(running, /sorted by involuntary, reversed$/);
    order(running, 'resize 50 6');
    const narrow = await drawn(running, /^… \d+ lines more$/);
    expect(narrow).toHaveLength(6);
    expect(narrow.filter((line) => line.length > 50)).toEqual([]);
    type(running, 'q');
    expect(await atEnd(running)).toBe('code 0');
  });

  it.each([
    ['Ctrl-C', (running: Running) => type(running, CTRL_C)],
    ['Ctrl-\\', (running: Running) => type(running, CTRL_BACKSLASH)],
    ['SIGTERM', ({ process: { pid } }: Running) => process.kill(pidBelow(pid!), 'SIGTERM')],
    ['SIGHUP', ({ process: { pid } }: Running) => process.kill(pidBelow(pid!), 'SIGHUP')],
  ])('restores the terminal at %s', async (_, finish) => {
    const running = onTerminal(join(newFolder(), 'state'));
    await drawn(running, /^No state: nothing is granted\.$/);
    finish(running);
    expect(await atEnd(running)).toBe('code 0');
  });

  it('ends silently with its terminal', async () => {
    const program = ['python3', TERMINAL, '80', '24', '--', process.execPath, MAIN] as const;
    const args = ['top', '--interval', '60', '--state-dir', join(newFolder(), 'state')];
    const running = start(args, { program, env: { TERM: 'xterm' } });
    await drawn(running, /^No state/);
    order(running, 'close');
    const { code, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('gives the terminal back at Ctrl-Z, reads nothing until it goes on, and draws again then', async () => {
    const running = onTerminal(join(newFolder(), 'state'), '--interval', '0.1');
    await drawn(running, /^No state/);
    const pid = pidBelow(running.process.pid!);
    type(running, CTRL_Z);
    await until(() => stateOf(pid) === 'T', 'the stop');
    await until(() => running.output.stdout.endsWith(LEAVE), 'the terminal as it was');
    const read = readFileSync(`/proc/${pid}/io`, 'utf8');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(readFileSync(`/proc/${pid}/io`, 'utf8')).toBe(read);
    process.kill(pid, 'SIGCONT');
    await until(() => running.output.stdout.split(ENTER).length === 3, 'the screen again');
    type(running, 'q');
    expect(await atEnd(running)).toBe('code 0');
  });
});

describe('numalign top without a terminal', () => {
  it('runs on shared CPUs with all its threads, changes nothing, and counts what happens', async () => {
    const { stateDir, grant } = await acquire('gateway');
    const before = readFileSync(join(stateDir, 'state.json'), 'utf8');
    const running = start(['top', '--interval', '0.2', '--state-dir', stateDir, '--output', 'json']);
    const lines = () => running.output.stdout.split('\n').slice(0, -1);
    await until(() => lines().length >= 2, 'two looks');
    const tasks = `/proc/${running.process.pid}/task`;
    for (const tid of readdirSync(tasks)) {
      const [, cpus] = /^Cpus_allowed_list:\t(.*)$/m.exec(readFileSync(`${tasks}/${tid}/status`, 'utf8'))!;
      expect([tid, grant.cpus.intersects(CpuSet.parse(cpus!))]).toEqual([tid, false]);
    }
    running.process.kill('SIGTERM');
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [first] = JSON.parse(stdout.split('\n')[0]!).grants;
    expect(first).toMatchObject({ uid: grant.uid, name: 'gateway', cpus: `${grant.cpus}` });
    expect(first.figures.interruptsPerSecond).toBeGreaterThanOrEqual(0);
    expect(readFileSync(join(stateDir, 'state.json'), 'utf8')).toBe(before);
  });

  it('prints one page with --once, also without a state, whose folder it does not make', async () => {
    const folder = join(newFolder(), 'state');
    const { code, stdout } = await numalign(['top', '--once', '--interval', '0.1', '--state-dir', folder]);
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^\S+state, .*, every 0\.1 s\n\nNo state: nothing is granted\.\n$/),
    ]);
    expect(existsSync(folder)).toBe(false);
  });

  it('refuses a column that it does not have, and an interval that is none', async () => {
    const column = await numalign(['top', '--once', '--sort', 'cpu']);
    expect([column.code, column.stdout]).toEqual([2, '']);
    expect(column.stderr).toContain('name, run, delay, involuntary, foreign, interrupts, elsewhere');
    expect((await numalign(['top', '--once', '--interval', '0'])).code).toBe(2);
  });
});
