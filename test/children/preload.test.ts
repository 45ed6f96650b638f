// needs: process
// numalign/preload in processes that have a grant already.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { openManager } from '../../lib/index.js';
import { makeStateDir } from '../support/state-dir.js';
import { mortal, ROOT, reportOf } from './children.js';

const TENANT = fileURLToPath(new URL('tenant.mjs', import.meta.url));
const ALL = affinity();
const PRELOAD = join(ROOT, 'dist/preload.js');

async function acquired(stateDir = makeStateDir()) {
  const manager = await openManager({ stateDir });
  onTestFinished(() => manager.close());
  return manager.acquire({ cpu: 1 });
}

async function outputOf(child: ChildProcess) {
  const output = { stdout: '', stderr: '' };
  child.stdout!.on('data', (text) => (output.stdout += text));
  child.stderr!.on('data', (text) => (output.stderr += text));
  const [code] = await once(child, 'close');
  return { code, ...output };
}

/** A program with the preload by NODE_OPTIONS, as its children inherit it. */
async function run(program: string, request: object, stateDir = makeStateDir()) {
  const { NUMALIGN_GRANT: _grant, NUMALIGN_PRELOAD_PID: _pid, ...rest } = process.env;
  const file = `${stateDir}.mjs`;
  writeFileSync(file, program);
  const env = {
    ...rest,
    NODE_OPTIONS: `--import ${PRELOAD}`,
    NUMALIGN_ACQUIRE: JSON.stringify(request),
    NUMALIGN_MANAGER: JSON.stringify({ stateDir }),
  };
  return outputOf(spawn(process.execPath, [file], { cwd: ROOT, env }));
}

const NUMALIGN_PRELOAD = `import { grant } from ${JSON.stringify(PRELOAD)};
  import { affinity } from ${JSON.stringify(join(ROOT, 'dist/entries/diagnostics.js'))};`;

describe('numalign/preload in a child of a grant', () => {
  it('finds the grant, on which the child can run threads and programs, and change nothing', async () => {
    const grant = await acquired();
    const child = mortal(grant.fork(TENANT, [], { cwd: ROOT, execArgv: ['--import', 'numalign/preload'] }));
    const [first, exit] = await Promise.all([reportOf<any>(child), once(child, 'exit')]);
    const done = ['pin', 'placeThreads', 'worker', 'spawn', 'fork', 'buffer'];
    const refused = ['resize', 'transfer', 'handOver', 'unpin', 'release'];
    expect(first).toEqual({
      uid: grant.uid,
      isOwner: true,
      isMember: false,
      mask: String(grant.cpus),
      outcomes: {
        ...Object.fromEntries(done.map((name) => [name, 'done'])),
        ...Object.fromEntries(refused.map((name) => [name, 'ERR_OWNER_ALIVE'])),
      },
    });
    expect(exit).toEqual([0, null]);
    await grant.release();
  });

  it('runs the program without a grant if that has ended meanwhile', async () => {
    const grant = await acquired();
    const { uid } = grant;
    const { stateDir } = await openManager({ stateDir: makeStateDir() });
    const program = `${NUMALIGN_PRELOAD} console.log(grant === undefined);`;
    const child = spawn(process.execPath, ['--import', PRELOAD, '--input-type=module', '-e', program], {
      env: { ...process.env, NUMALIGN_GRANT: uid, NUMALIGN_STATE_DIR: stateDir, NUMALIGN_PRELOAD_PID: '' },
    });
    expect(await outputOf(child)).toEqual({ code: 0, stdout: 'true\n', stderr: '' });
  });
});

describe('numalign/preload that is inherited by NODE_OPTIONS', () => {
  it('acquires nothing in a Node process that the program spawns, which runs on the same CPUs', async () => {
    const { code, stdout, stderr } = await run(
      `${NUMALIGN_PRELOAD}
       import { spawnSync } from 'node:child_process';
       const isChild = process.argv[2] === 'child';
       console.log(JSON.stringify([String(affinity()), process.env.NUMALIGN_GRANT, isChild === (grant === undefined)]));
       if (!isChild) spawnSync(process.execPath, [process.argv[1], 'child'], { stdio: 'inherit' });`,
      { cpu: 1 },
    );
    expect([code, stderr]).toEqual([0, '']);
    const [parent, child] = stdout.trim().split('\n');
    expect(child).toBe(parent);
    expect(JSON.parse(parent!)[2]).toBe(true);
  });

  it('says what to do if there is no room for a worker of node:cluster', async () => {
    const { stderr } = await run(
      `import cluster from 'node:cluster';
       if (cluster.isPrimary) cluster.fork().once('exit', (code) => console.log(code));
       else console.log('it runs');`,
      // One CPU must stay shared.
      { cpu: ALL.size - 1 },
    );
    expect(stderr).toMatch(
      /^numalign\/preload: .*\[ERR_\w+\]\nnumalign\/preload: each worker of node:cluster/,
    );
    expect(stderr).toContain(`NUMALIGN_ACQUIRE='{"cpu": 1, "wait": true}'`);
  });
});
