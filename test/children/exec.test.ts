// needs: agents
// Grant.exec: this process becomes a program. Each test has a process of its own for that.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const PACKAGE = fileURLToPath(new URL('../../dist', import.meta.url));

// With the same pipe as stdout and stderr.
const ON_ONE_PIPE = ['sh', '-c', 'exec "$0" "$@" 2>&1', process.execPath];

/** Makes a command line of Node run `body` in a program with a manager and a grant of one CPU. */
function run(body: string, [program, ...before]: readonly string[] = [process.execPath]) {
  const stateDir = makeStateDir();
  const script = `
    import { writeSync, readFileSync } from 'node:fs';
    import { openManager } from '${PACKAGE}/index.js';
    import { affinity } from '${PACKAGE}/entries/diagnostics.js';
    const print = (text) => writeSync(1, text + '\\n');
    const manager = await openManager({ stateDir: ${JSON.stringify(stateDir)} });
    const grant = await manager.acquire({ cpu: 1 });
    ${body}`;
  const { status, stdout, stderr } = spawnSync(program!, [...before, '--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { ...process.env, OUTER: 'outer' },
  });
  return { stateDir, status, lines: stdout.split('\n').slice(0, -1), stderr };
}

describe.runIf(affinity().size > 1)('grant.exec', () => {
  it('runs the program on the grant, in its environment, under its given name', async () => {
    const { status, lines } = run(`
      print(process.pid); print(String(grant.cpus));
      grant.exec('sh', ['-c', 'echo $$; grep Cpus_allowed_list /proc/$$/status; echo $NUMALIGN_CPUS $INNER$OUTER; head -c 5 /proc/$$/cmdline; echo; exit 4'],
        { env: { PATH: process.env.PATH, INNER: 'inner' }, argv0: 'other' });`);
    const [pid, cpus, ...rest] = lines;
    expect(status).toBe(4);
    expect(rest).toEqual([pid, `Cpus_allowed_list:\t${cpus}`, `${cpus} inner`, 'other']);
  });

  it('leaves descriptors open to the program on request', () => {
    const { lines } = run(`
      const { openSync } = await import('node:fs');
      const [kept, closed] = [openSync('/dev/zero'), openSync('/dev/full')];
      grant.exec('sh', ['-c', 'readlink /proc/$$/fd/*'], { descriptors: [kept] });`);
    expect(lines.filter((file) => /zero|full/.test(file))).toEqual(['/dev/zero']);
  });

  it('ends the grant with the program', async () => {
    const { stateDir, status } = run(`grant.exec('true');`);
    expect(status).toBe(0);
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    expect([manager.grants(), `${manager.sharedPool()}`]).toEqual([[], `${affinity()}`]);
  });

  it('leaves the process unchanged if there is no such program', async () => {
    const { status, lines, stderr } = run(`
      const look = () => readFileSync('/proc/thread-self/status', 'utf8').match(/Sig(Blk|Ign).*|Cpus_allowed_list.*/g).join() + affinity();
      const before = look();
      try { grant.exec('no-such-program'); } catch ({ code, errnoName }) { print(code + ' ' + errnoName); }
      print(String(look() === before));
      grant.spawn('echo', ['spawned'], { stdio: 'inherit' }).on('exit', async () => {
        print(String(grant.cpus.size));
        await grant.release();
        manager.close();
      });`);
    expect([status, stderr]).toEqual([0, '']);
    expect(lines).toEqual(['ERR_SYSCALL ENOENT', 'true', 'spawned', '1']);
  });

  it('leaves streams unchanged if there is no such program, even several of one pipe', () => {
    const { status, lines } = run(
      `
      const look = () => [0, 1, 2].map((fd) => readFileSync('/proc/self/fdinfo/' + fd, 'utf8').match(/flags:.*/)[0]).join();
      // Node has a pipe not block that it writes to.
      process.stdout.write('begun\\n');
      const before = look();
      try { grant.exec('no-such-program'); } catch ({ errnoName }) { print(errnoName); }
      const after = look();
      print(before === after ? 'same' : before + ' ' + after);
      print(String(before.includes('4001') || before.includes('4002')));
      await grant.release();
      manager.close();`,
      ON_ONE_PIPE,
    );
    expect([status, lines]).toEqual([0, ['begun', 'ENOENT', 'same', 'true']]);
  });

  it('is refused for invalid names, arguments and options of a program, and for a simulated machine', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    const codes = [
      await errorOf(() => grant.exec('')),
      await errorOf(() => grant.exec('a\0b')),
      await errorOf(() => grant.exec('true', ['a\0b'])),
      await errorOf(() => grant.exec('true', [1 as unknown as string])),
      await errorOf(() => grant.exec('true', [], { env: { NAME: 'a\0b' } })),
      await errorOf(() => grant.exec('true', [], { cwd: '/' } as object)),
      await errorOf(() => grant.exec('true', [], { descriptors: [-1] })),
    ].map(({ code }) => code);
    expect(new Set(codes)).toEqual(new Set(['ERR_INVALID_OPTION']));
    await grant.release();
    expect((await errorOf(() => grant.exec('true'))).code).toBe('ERR_GRANT_RELEASED');
    const topology = await discover({ synthetic: 'core:2 pu:1' });
    const simulated = await openManager({ stateDir: makeStateDir(), topology });
    onTestFinished(() => simulated.close());
    const other = await simulated.acquire({ cpu: 1 });
    expect((await errorOf(() => other.exec('true'))).code).toBe('ERR_SIMULATED_MACHINE');
  });
});
