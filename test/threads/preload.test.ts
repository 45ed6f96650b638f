// needs: machine
// node --import numalign/preload: a program on its own CPUs from its first line, or not at all.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { makeStateDir } from '../support/state-dir.js';
import { ALL, ofWholePool } from './everything.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** `code`: a program, or the path of one. */
function run(code: string, variables: Record<string, object | string>) {
  const { NUMALIGN_GRANT: _grant, NUMALIGN_CPUS: _cpus, NUMALIGN_PRELOAD_PID: _pid, ...env } = process.env;
  for (const [name, value] of Object.entries(variables)) {
    env[name] = typeof value === 'string' ? value : JSON.stringify(value);
  }
  // The package by its name, as its users import it.
  const program = code.endsWith('.mjs') ? [code] : ['--input-type=module', '-e', code];
  return spawnSync(process.execPath, ['--import', 'numalign/preload', ...program], {
    cwd: ROOT,
    encoding: 'utf8',
    env,
  });
}

const APP = `
  import { readFileSync } from 'node:fs';
  import { affinity, threads } from 'numalign/diagnostics';
  import { grant, manager } from 'numalign/preload';
  console.log(JSON.stringify({
    cpus: String(grant?.cpus), name: grant?.name, mask: String(affinity()), isOpen: manager !== undefined,
    masks: [...new Set(threads().map(({ cpus }) => String(cpus)))],
    pool: threads().filter(({ role }) => role === 'pool').length,
    variables: [process.env.NUMALIGN_GRANT === grant?.uid, process.env.NUMALIGN_CPUS],
    memory: /^\\w+ (\\S+) .*stack/m.exec(readFileSync('/proc/thread-self/numa_maps', 'utf8'))?.[1],
  }));`;

describe.runIf(ALL.size > 1)('numalign/preload', () => {
  it('acquires, and places every thread, before the program’s first line', async () => {
    const { status, stdout, stderr } = await ofWholePool(
      () =>
        run(APP, {
          NUMALIGN_ACQUIRE: { cpu: 1, name: 'app' },
          NUMALIGN_MANAGER: { stateDir: makeStateDir() },
          NUMALIGN_THREADS: { pool: 'one-to-one' },
          UV_THREADPOOL_SIZE: '3',
        }),
      (ended) => ended.status !== 0 || JSON.parse(ended.stdout).pool === 3,
    );
    expect([status, stderr]).toEqual([0, '']);
    const app = JSON.parse(stdout);
    expect(app).toMatchObject({ name: 'app', mask: app.cpus, masks: [app.cpus], pool: 3, isOpen: true });
    expect(app.variables).toEqual([true, app.cpus]);
    expect(app.memory).toMatch(/^prefer/);
    expect(app.cpus).not.toBe(String(ALL));
  });

  it('leaves it to the first thread: Workers are known, and run on the grant', () => {
    const { status, stdout, stderr } = run(
      `import { Worker } from 'node:worker_threads';
       import { threads } from 'numalign/diagnostics';
       import { grant } from 'numalign/preload';
       const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(
         "import { parentPort } from 'node:worker_threads'; setInterval(() => {}, 1000); parentPort.postMessage('up')")));
       worker.once('message', async () => {
         const known = threads().filter(({ role }) => role === 'worker').map(({ cpus }) => String(cpus));
         console.log(JSON.stringify([known, String(grant.cpus)]));
         await worker.terminate();
       });`,
      { NUMALIGN_ACQUIRE: { cpu: 1 }, NUMALIGN_MANAGER: { stateDir: makeStateDir() } },
    );
    expect([status, stderr]).toEqual([0, '']);
    const [known, cpus] = JSON.parse(stdout);
    expect(known).toEqual([cpus]);
  });

  it('takes no second grant in processes that run on one already', () => {
    const { status, stdout } = run(APP, {
      NUMALIGN_GRANT: 'of its parent',
      NUMALIGN_ACQUIRE: { cpu: ALL.size },
    });
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ isOpen: false, cpus: 'undefined' });
  });
});

describe.runIf(ALL.size > 1)('numalign/preload in processes that others start', () => {
  const variables = () => ({
    NUMALIGN_ACQUIRE: { cpu: 1, wait: true },
    NUMALIGN_MANAGER: { stateDir: makeStateDir() },
  });

  it('takes no second grant if grant.spawn has started them, whatever their environment', () => {
    const { status, stdout } = run(
      `import { openManager } from 'numalign';
       const { stateDir } = JSON.parse(process.env.NUMALIGN_MANAGER);
       const manager = await openManager({ stateDir });
       const grant = await manager.acquire({ cpu: 1 });
       const script = "import { grant } from 'numalign/preload';" +
         'console.log(JSON.stringify([grant.uid, process.env.NUMALIGN_GRANT, process.env.NUMALIGN_CPUS]));';
       const words = ['--import', 'numalign/preload', '--input-type=module', '-e', script];
       console.log(JSON.stringify([grant.uid, grant.uid, String(grant.cpus)]));
       for (const env of [undefined, { PATH: process.env.PATH }]) {
         const child = grant.spawn(process.execPath, words, { stdio: 'inherit', ...(env && { env }) });
         await new Promise((resolve) => child.once('exit', resolve));
       }
       process.exit();`,
      { ...variables(), NUMALIGN_GRANT: 'of its parent' },
    );
    const [own, ...children] = stdout.trim().split('\n');
    expect([status, children]).toEqual([0, [own, own]]);
  });

  // Where there are two CPUs a second grant waits for the end of the first.
  it('makes each cluster worker acquire its own CPUs, and none run on those of its primary', () => {
    const stateDir = makeStateDir();
    const program = `${stateDir}.mjs`;
    writeFileSync(
      program,
      `import cluster from 'node:cluster';
       import { affinity } from ${JSON.stringify(join(ROOT, 'dist/entries/diagnostics.js'))};
       import { grant } from ${JSON.stringify(join(ROOT, 'dist/preload.js'))};
       if (cluster.isPrimary) {
         const { uid } = grant;
         const worker = cluster.fork();
         worker.once('online', () => grant.release());
         worker.once('message', ({ own, ...rest }) => console.log(JSON.stringify({ ...rest, isOwn: own !== uid })));
       } else {
         const { uid, cpus } = grant;
         process.send({ own: uid, isPlaced: affinity().equals(cpus), isNamed: process.env.NUMALIGN_GRANT === uid });
         process.disconnect();
       }`,
    );
    const { status, stdout, stderr } = run(program, { ...variables(), NUMALIGN_MANAGER: { stateDir } });
    expect([status, stderr]).toEqual([0, '']);
    expect(JSON.parse(stdout)).toEqual({ isOwn: true, isPlaced: true, isNamed: true });
  });

  it('lets cluster workers share the grant that their primary was started on', () => {
    const program = `${makeStateDir()}.mjs`;
    writeFileSync(
      program,
      `import cluster from 'node:cluster';
       import { grant } from ${JSON.stringify(join(ROOT, 'dist/preload.js'))};
       if (cluster.isPrimary) cluster.fork().once('message', (report) => console.log(report));
       else {
         process.send(grant === undefined ? 'shares it' : 'has its own');
         process.disconnect();
       }`,
    );
    const { stdout } = run(program, { ...variables(), NUMALIGN_GRANT: 'of its parent' });
    expect(stdout).toBe('shares it\n');
  });
});

describe('numalign/preload does not run the program, and says why, where', () => {
  const manager = () => ({ stateDir: makeStateDir() });
  it.each([
    ['nothing is asked for', {}, /NUMALIGN_ACQUIRE is not set/],
    [
      'what is asked for is no JSON',
      { NUMALIGN_ACQUIRE: '{cpu' },
      /NUMALIGN_ACQUIRE must be a JSON object.*\{cpu/,
    ],
    ['it is a list', { NUMALIGN_ACQUIRE: [1] }, /NUMALIGN_ACQUIRE must be a JSON object.*\[1\]/],
    ['it is misspelled', { NUMALIGN_ACQUIRE: { cpus: 1 } }, /did you mean "cpu".*\[ERR_INVALID_OPTION\]/],
    ['it cannot be had', { NUMALIGN_ACQUIRE: { cpu: 10_000 } }, /\[ERR_INSUFFICIENT_CPUS\]/],
    [
      'the state cannot be opened',
      { NUMALIGN_ACQUIRE: { cpu: 1 }, NUMALIGN_MANAGER: { stateDir: '/nowhere/at/all' } },
      /\[ERR_STATE_FOLDER\]\nnumalign\/preload: NUMALIGN_MANAGER='\{"stateDir": ".*"\}' uses another folder\n$/,
    ],
    [
      'the placement makes no sense',
      { NUMALIGN_ACQUIRE: { cpu: 1 }, NUMALIGN_THREADS: { main: '9999' } },
      /\[ERR_INVALID_OPTION\]/,
    ],
  ] as const)('%s', (_where, variables, message) => {
    const { status, stdout, stderr } = run('console.log("it runs")', {
      NUMALIGN_MANAGER: manager(),
      ...variables,
    });
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(/^(numalign\/preload: .*\n)+$/);
    expect(stderr).toMatch(message);
  });
});
