// needs: process
// grant.fork: Node processes on the CPUs of a grant, with a channel for messages.
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { type Grant, openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { CHILD, end, mortal, reportOf } from './children.js';

const ALL = affinity();

async function acquired(): Promise<Grant> {
  const manager = await openManager({ stateDir: makeStateDir() });
  onTestFinished(() => manager.close());
  return manager.acquire({ cpu: 1 });
}

describe('grant.fork', () => {
  it('runs the child on the CPUs from its first line of code, and does not move this process', async () => {
    const grant = await acquired();
    const { mask } = await reportOf(mortal(grant.fork(CHILD)));
    expect(mask).toBe(String(grant.cpus));
    expect(affinity().equals(ALL.difference(grant.cpus))).toBe(true);
  });

  it('names grant, CPUs, nodes, devices and state folder in any environment of the child', async () => {
    const grant = await acquired();
    const { env } = await reportOf(
      mortal(grant.fork(CHILD, [], { env: { NUMALIGN_CPUS: 'others', OTHER: '1' } })),
    );
    const { NUMALIGN_STATE_DIR: stateDir, ...rest } = env;
    expect(rest).toEqual({
      OTHER: '1',
      NUMALIGN_GRANT: grant.uid,
      NUMALIGN_CPUS: String(grant.cpus),
      NUMALIGN_NODES: String(grant.numaNodes),
      NUMALIGN_DEVICES: '{}',
      NUMALIGN_PRELOAD_PID: '',
    });
    const view = await openManager({ stateDir: stateDir!, readOnly: true });
    expect(view.grants().map(({ uid }) => uid)).toEqual([grant.uid]);
    view.close();
  });

  it('passes messages both ways', async () => {
    const child = mortal((await acquired()).fork(CHILD));
    await reportOf(child);
    child.send({ question: 1 });
    expect(await reportOf(child)).toEqual({ heard: { question: 1 } });
  });

  it.each([
    ['arguments and options', [['a', 'b'], { silent: true }], ['a', 'b']],
    ['options alone', [{ silent: true }], []],
    ['an array of streams', [[], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] }], []],
    ['fewer streams than three', [[], { stdio: ['ipc', 'pipe'] }], []],
  ] as const)('takes %s, as Node does', async (_what, given, args) => {
    const grant = await acquired();
    const child = mortal(grant.fork(CHILD, ...(given as unknown as [])));
    const first = await reportOf(child);
    expect([first.args, first.env.NUMALIGN_GRANT]).toEqual([args, grant.uid]);
    expect(child.stdout).not.toBeNull();
  });

  it('fails like Node for a missing module, after which the grant can be released', async () => {
    const grant = await acquired();
    const child = grant.fork(`${CHILD}.none`, { silent: true });
    const texts: string[] = [];
    child.stderr!.on('data', (text) => texts.push(String(text)));
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(texts.join('')).toContain('MODULE_NOT_FOUND');
    await grant.release();
  });

  it.each([
    ['streams without a channel', { stdio: ['pipe'] }, 'ERR_CHILD_PROCESS_IPC_REQUIRED'],
    ['unknown thread counts', { threadCounts: 4 }, 'ERR_INVALID_OPTION'],
  ])('starts nothing for %s', async (_what, options, code) => {
    const grant = await acquired();
    expect((await errorOf(() => grant.fork(CHILD, [], options as object))).code).toBe(code);
    await grant.release();
  });

  it('keeps the grant from being released until the child has ended', async () => {
    const grant = await acquired();
    const child = mortal(grant.fork(CHILD));
    await reportOf(child);
    expect(await errorOf(() => grant.release())).toMatchObject({
      code: 'ERR_CHILD_ALIVE',
      details: { pid: child.pid },
    });
    await end(child);
    await grant.release();
    expect((await errorOf(() => grant.fork(CHILD))).code).toBe('ERR_GRANT_RELEASED');
  });

  it('hands the grant over to the child', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    const child = mortal(grant.fork(CHILD));
    await reportOf(child);
    expect(await grant.handOver()).toBe(true);
    expect(manager.grants()).toMatchObject([{ uid: grant.uid, alive: true }]);
    await end(child);
    await expect.poll(() => manager.grants()).toEqual([]);
  });
});

describe("threadCounts: 'auto'", () => {
  it('tells the child how many threads to start, if its environment does not', async () => {
    const grant = await acquired();
    const env = { OMP_NUM_THREADS: '7' };
    const child = mortal(grant.fork(CHILD, [], { env, threadCounts: 'auto' }));
    expect((await reportOf(child)).env).toMatchObject({
      OMP_NUM_THREADS: '7',
      MKL_NUM_THREADS: '1',
      GOMAXPROCS: '1',
      UV_THREADPOOL_SIZE: '4',
    });
  });

  it('is not set by default', async () => {
    const grant = await acquired();
    const { env } = await reportOf(mortal(grant.fork(CHILD, [], { env: {} })));
    expect(Object.keys(env).filter((name) => /THREADS|GOMAXPROCS/.test(name))).toEqual([]);
  });

  it('is an option of grant.spawn too, which takes options without arguments, like Node', async () => {
    const grant = await acquired();
    const child = grant.spawn('env', { env: { PATH: process.env.PATH }, threadCounts: 'auto' });
    const [[said]] = await Promise.all([once(child.stdout!, 'data'), once(child, 'exit')]);
    const lines = String(said).split('\n');
    expect(lines).toContain('OPENBLAS_NUM_THREADS=1');
    expect(lines).toContain(`NUMALIGN_GRANT=${grant.uid}`);
  });
});
