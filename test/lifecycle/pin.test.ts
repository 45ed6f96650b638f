// needs: process
// pin({ cpu: 1 }): one line from nothing to a process on its own CPUs, and nothing left after it.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { openManager, pin } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf } from '../support/state-text.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ALL = affinity();

// A program's view of itself: its masks, and its open files of a folder.
const TOOLS = `
  import { readdirSync, readlinkSync } from 'node:fs';
  import { pin } from 'numalign';
  import { threads } from 'numalign/diagnostics';
  const [stateDir, otherDir] = process.argv.slice(-2);
  const masks = () => [...new Set(threads().map(({ cpus }) => String(cpus)))];
  const linkOf = (fd) => { try { return readlinkSync('/proc/self/fd/' + fd); } catch { return ''; } };
  const openIn = (dir) => readdirSync('/proc/self/fd').map(linkOf).filter((path) => path.startsWith(dir)).length;
  const errorOf = (promise) => promise.then(() => 'none', ({ code }) => code);
  const tell = (value) => console.log(JSON.stringify(value));`;

function start(program: string, stateDir: string, otherDir = stateDir): ChildProcess {
  const code = `${TOOLS}\n${program}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code, '--', stateDir, otherDir], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function run(program: string, stateDir: string, otherDir?: string) {
  const child = start(program, stateDir, otherDir);
  let text = '';
  child.stdout!.on('data', (data) => (text += data));
  const [code] = await once(child, 'close');
  expect(code).toBe(0);
  return JSON.parse(text);
}

async function firstLine(child: ChildProcess) {
  const [line] = await once(child.stdout!, 'data');
  return JSON.parse(String(line));
}

const PIN = 'const grant = await pin({ cpu: 1, manager: { stateDir } });';

// A member of no shared pool: two folders do not know each other.
const STRANGER = 'const grant = await pin({ cpu: 1, manager: { stateDir, sharedMember: false } });';

describe('pin({ cpu: 1 })', () => {
  it('runs the process on its own CPUs; a natural end releases them', async () => {
    const stateDir = makeStateDir();
    const { cpus, masks } = await run(`${PIN} tell({ cpus: String(grant.cpus), masks: masks() });`, stateDir);
    expect(masks).toEqual([cpus]);
    expect(cpus).not.toBe(String(ALL));
    // Off the record already, not only through the end of its lock.
    expect(membersOf(stateDir).pods).toEqual([]);
  });

  // In a machine without a state and without cgroups.
  it.runIf(process.getuid!() === 0)('is pin(); pin(4096) asks for 4096', () => {
    const hidden = ['/run', '/sys/fs/cgroup'].map((path) => `mount -t tmpfs tmpfs ${path} && `).join('');
    const program = `${TOOLS} const { cpus } = await pin(); const left = masks();
      const error = await pin(4096).catch((error) => error); tell([cpus.size, left, error.message.slice(0, 29)]);`;
    const node = [process.execPath, '--input-type=module', '-e', program];
    const args = ['-m', 'sh', '-c', `${hidden}exec "$@"`, 'sh', ...node];
    const { stdout } = spawnSync('unshare', args, { cwd: ROOT, encoding: 'utf8' });
    expect(JSON.parse(stdout)).toEqual([1, [expect.any(String)], '4096 exclusive CPUs requested']);
  });

  it.each([
    ['SIGKILL', 'setInterval(() => {}, 1 << 30);'],
    ['process.exit()', 'setTimeout(() => process.exit(), 50);'],
  ])('ends the grant with the process after %s', async (how, program) => {
    const stateDir = makeStateDir();
    const child = start(`${PIN} tell(grant.uid); ${program}`, stateDir);
    const uid = await firstLine(child);
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    if (how === 'SIGKILL') {
      expect(manager.grants()).toMatchObject([{ uid, owner: { pid: child.pid }, alive: true }]);
      child.kill('SIGKILL');
    }
    await expect.poll(() => manager.grants()).toEqual([]);
  });

  it('leaves nothing open after a release, which moves the threads back', async () => {
    const report = await run(
      `const before = masks();
       ${PIN}
       const during = openIn(stateDir);
       await grant.release();
       tell([during > 0, openIn(stateDir), masks().join() === before.join(), process.listenerCount('beforeExit')]);`,
      makeStateDir(),
    );
    expect(report).toEqual([true, 0, true, 0]);
  });

  it('refuses threads that another grant has pinned, and holds nothing then', async () => {
    const [stateDir, otherDir] = [makeStateDir(), makeStateDir()];
    const report = await run(
      `${STRANGER}
       const error = await errorOf(pin({ cpu: 1, manager: { stateDir: otherDir, sharedMember: false } }));
       tell([error, openIn(otherDir), masks().join() === String(grant.cpus), process.listenerCount('beforeExit')]);`,
      stateDir,
      otherDir,
    );
    expect(report).toEqual(['ERR_ALREADY_PINNED', 0, true, 1]);
    expect(membersOf(otherDir).pods).toEqual([]);
  });

  it('takes them over with replace', async () => {
    const report = await run(
      `${STRANGER}
       const other = await pin({ cpu: 1, manager: { stateDir: otherDir, sharedMember: false }, replace: true });
       tell([masks().join() === String(other.cpus)]);`,
      makeStateDir(),
      makeStateDir(),
    );
    expect(report).toEqual([true]);
  });

  it('places each kind of thread by its placement', async () => {
    const report = await run(
      `const grant = await pin({ cpu: 1, threads: { pool: 'one-to-one' }, manager: { stateDir } });
       tell([masks().join() === String(grant.cpus), threads().filter(({ role }) => role === 'pool').length]);`,
      makeStateDir(),
    );
    expect(report).toEqual([true, 4]);
  });

  it('holds nothing if the threads cannot be placed', async () => {
    const stateDir = makeStateDir();
    const report = await run(
      `const before = masks();
       const error = await errorOf(pin({ cpu: 1, threads: { main: '4095' }, manager: { stateDir } }));
       tell([error, openIn(stateDir), masks().join() === before.join()]);`,
      stateDir,
    );
    expect(report).toEqual(['ERR_INVALID_OPTION', 0, true]);
    expect(membersOf(stateDir).pods).toEqual([]);
  });

  it('leaves a persistent grant on record', async () => {
    const stateDir = makeStateDir();
    const uid = await run(
      `const grant = await pin({ cpu: 1, owner: 'persistent', manager: { stateDir } }); tell(grant.uid);`,
      stateDir,
    );
    expect(membersOf(stateDir).pods).toMatchObject([{ uid }]);
  });

  it.each([
    ['a misspelled option', { cpus: 1 }, /pin has no option "cpus"; did you mean "cpu"/],
    ['a manager that only looks', { cpu: 1, manager: { readOnly: true } }, /manager\.readOnly/],
    ['replace that is no flag', { cpu: 1, replace: 1 }, /replace must be true or false/],
  ])('refuses %s before it opens anything', async (_what, request, message) => {
    expect(await errorOf(() => pin(request as unknown as { cpu: number }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      message: expect.stringMatching(message),
    });
  });
});
