// needs: folders
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Grant, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it, onTestFinished } from 'vitest';
import { spinningOrphan } from '../../../test/support/orphan.js';
import { makeStateDir } from '../../../test/support/state-dir.js';
import { MAIN, newFolder, numalign, type Running, start, until } from './numalign.js';

async function acquire(name: string) {
  const stateDir = makeStateDir();
  const manager = await openManager({ stateDir });
  const grant = await manager.acquire({ cpu: 1, name });
  onTestFinished(async () => {
    await grant.release();
    manager.close();
  });
  return { stateDir, grant };
}

const TERMINAL = fileURLToPath(new URL('../../../test/support/terminal.py', import.meta.url));

const watch = (stateDir: string, ...more: string[]) =>
  start(['status', '--watch', '--interval', '0.2', '--state-dir', stateDir, ...more]);

// After all starts: a later child would be born on the grant's CPUs, and count as one of its own.
const pinMain = (grant: Grant) => grant.pin({ threads: 'current' });

/** Its output once `count` lines match. */
const printed = ({ output }: Running, pattern: RegExp, count: number) =>
  until(() => output.stdout.split('\n').filter((line) => pattern.test(line)).length >= count, `${pattern}`);

async function interrupt({ process: child, ended }: Running, signal: NodeJS.Signals = 'SIGINT') {
  child.kill(signal);
  return ended;
}

describe('numalign status --watch', () => {
  it('prints a page for each round until it is interrupted, changes nothing and ends cleanly', async () => {
    const { stateDir, grant } = await acquire('gateway');
    const before = readFileSync(join(stateDir, 'state.json'), 'utf8');
    const running = watch(stateDir);
    pinMain(grant);
    await printed(running, /^\S+ +gateway.* members +1 /, 2);
    const { code, signal, stdout, stderr } = await interrupt(running);
    expect({ code, signal, stderr }).toEqual({ code: 0, signal: null, stderr: '' });
    expect(stdout).toMatch(/ every 0\.2 s; generation 2, shared: /);
    expect(stdout).toMatch(
      /^ID +NAME +CPUS +ENFORCEMENT +THREADS +RUN +DELAY +INVOLUNTARY +FOREIGN +INTERRUPTS +THROTTLED$/m,
    );
    const row = `^${grant.uid.slice(0, 8)} +gateway +${grant.cpus} +members +1 +\\d+% +\\S+( ms/s)? +\\d+/s +\\d`;
    expect(stdout).toMatch(new RegExp(row, 'm'));
    // Without a terminal there is nothing to draw on.
    expect(stdout).not.toContain('\u001b');
    expect(readFileSync(join(stateDir, 'state.json'), 'utf8')).toBe(before);
  });

  it('draws on a terminal in place and to its size, and restores it', async () => {
    const { stateDir } = await acquire('gateway');
    const program = ['python3', TERMINAL, '120', '20', '--', process.execPath, MAIN] as const;
    const running = start(['status', '--watch', '--interval', '60', '--state-dir', stateDir], {
      program,
      env: { TERM: 'xterm', NO_COLOR: '1' },
    });
    const pages = () => running.output.stdout.split('\u001b[H').slice(1);
    // At once, and not after a minute.
    const wide = await until(() => pages().find((page) => page.endsWith('\u001b[J')), 'the first page');
    expect(running.output.stdout.startsWith('\u001b[?1049h\u001b[?25l')).toBe(true);
    expect(wide).toMatch(/^ID +NAME +CPUS +ENFORCEMENT /m);
    running.process.stdin!.write('resize 50 6\n');
    const narrow = await until(
      () =>
        pages()
          .slice(1)
          .find((page) => page.endsWith('\u001b[J')),
      'a page after the resize',
    );
    const lines = narrow.replaceAll('\u001b[K', '').split(/\r\n/);
    expect(lines).toHaveLength(6);
    expect(lines.filter((line) => line.length > 50)).toEqual([]);
    expect(lines.at(-1)).toMatch(/^… \d+ lines more/);
    running.process.stdin!.write('type 3\n');
    const { code, stdout } = await running.ended;
    expect(code).toBe(0);
    // The cursor is visible again, and the last page stays.
    const after = stdout.split('\u001b[?25h\u001b[?1049l')[1];
    expect(after).toMatch(/^NAME +gateway\r$/m);
    expect(after).not.toContain('\u001b');
  });

  it.each([
    ['Ctrl-\\', 'type 28'],
    ['a terminal that is closed', 'close'],
  ])('ends silently at %s too', async (_, order) => {
    const program = ['python3', TERMINAL, '80', '20', '--', process.execPath, MAIN] as const;
    const args = ['status', '--watch', '--interval', '60', '--state-dir', join(newFolder(), 'state')];
    const running = start(args, { program, env: { TERM: 'xterm' } });
    await until(() => running.output.stdout.endsWith('\u001b[J'), 'the first page');
    running.process.stdin!.write(`${order}\n`);
    const { code, stdout, stderr } = await running.ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    if (order !== 'close')
      expect(stdout).toMatch(/\[\?25h\S*\[\?1049l.*\r\n\r\nNo state: nothing is granted\.\r\n$/);
  });

  it('names other processes that run there', async () => {
    const { stateDir, grant } = await acquire('gateway');
    const { pid } = spinningOrphan(grant.cpus);
    const running = watch(stateDir);
    await printed(running, new RegExp(`^ {2}gateway: .*\\(pid ${pid}, ran `), 1);
    expect((await interrupt(running, 'SIGTERM')).code).toBe(0);
  });

  it('prints one JSON document a line, with the changes since the one before', async () => {
    const { stateDir, grant } = await acquire('gateway');
    const running = watch(stateDir, '--output', 'json');
    pinMain(grant);
    await printed(running, /"threads":\[\{.*\}$/, 2);
    const { code, stdout, stderr } = await interrupt(running);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const documents = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(documents.at(-1).grants[0].audit.threads).toHaveLength(1);
    for (const [i, { time, generation, grants }] of documents.entries()) {
      expect(generation).toBe(2);
      const { uid, cpus, owner, audit } = grants[0];
      expect({ uid, cpus, pid: owner.pid }).toEqual({
        uid: grant.uid,
        cpus: `${grant.cpus}`,
        pid: process.pid,
      });
      expect(audit.threads.every(({ tid }: { tid: number }) => tid === process.pid)).toBe(true);
      expect(Date.parse(audit.since)).toBeLessThan(Date.parse(time));
      if (i > 0)
        expect(Date.parse(audit.since)).toBeGreaterThanOrEqual(
          Date.parse(documents[i - 1].grants[0].audit.since),
        );
    }
  });

  it("counts processes of `numalign run` as the grant's", async () => {
    const stateDir = newFolder();
    const run = start([
      'run',
      '--cpus',
      '1',
      '--state-dir',
      stateDir,
      '--',
      'sh',
      '-c',
      'echo "is $$"; while :; do :; done',
    ]);
    const pid = await until(() => /^is (\d+)$/m.exec(run.output.stdout)?.[1], 'the command');
    const running = watch(stateDir, '--output', 'json');
    await printed(running, new RegExp(`"threads":\\[\\{"pid":${pid},`), 1);
    expect(running.output.stdout).not.toMatch(new RegExp(`"pid":${pid},[^}]*"kind"`));
    await interrupt(running);
    expect((await interrupt(run, 'SIGTERM')).signal).toBe('SIGTERM');
  });

  it('waits for the first grants, and makes no folder', async () => {
    const folder = join(newFolder(), 'state');
    const running = watch(folder);
    await printed(running, /^No state: nothing is granted\.$/, 1);
    expect(existsSync(folder)).toBe(false);
    const manager = await openManager({ stateDir: folder });
    await printed(running, /^No grants\.$/, 1);
    const grant = await manager.acquire({ cpu: 1, name: 'late' });
    await printed(running, /^\S+ +late /, 1);
    await grant.release();
    manager.close();
    expect((await interrupt(running)).code).toBe(0);
  });

  it('refuses the state of a simulated machine, and options that make no sense', async () => {
    const stateDir = newFolder();
    const topology = await discover({ synthetic: 'core:4 pu:1' });
    (await openManager({ topology, stateDir })).close();
    const simulated = await numalign(['status', '--watch', '--state-dir', stateDir]);
    expect(simulated).toMatchObject({ code: 1, stdout: '' });
    expect(simulated.stderr).toContain('belongs to a simulated machine');
    for (const wrong of [
      ['--interval', '1'],
      ['--watch', '--interval', '0'],
      ['--watch', '--interval', 'x'],
    ]) {
      expect((await numalign(['status', ...wrong])).code).toBe(2);
    }
  });
});
