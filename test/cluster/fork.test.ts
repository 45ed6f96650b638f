// needs: process
// Workers that this process forks onto their own CPUs.
import { spawn } from 'node:child_process';
import nodeCluster from 'node:cluster';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { GrantedWorker } from '../../lib/entries/cluster.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { AdmissionError, NumalignError, openManager } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { ALL, cluster, fork, required, setUp } from './this-primary.js';

const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const maskOf = (pid: number) =>
  /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1];

describe('a worker', () => {
  it('is alone on the CPUs of its grant in its first line, and knows them', async () => {
    const manager = await setUp();
    const { worker, line } = await fork({ name: 'server', env: { MARK: 'its own' } });
    const { uid, cpus } = worker.grant!;
    expect(line).toEqual({ cpus: `${cpus}`, grant: uid, granted: `${cpus}`, mark: 'its own' });
    expect(maskOf(worker.process.pid!)).toBe(`${cpus}`);
    expect(affinity().intersection(cpus).isEmpty).toBe(true);
    expect(manager.grants()).toMatchObject([{ uid, name: 'server' }]);
    expect([cpus.size, worker.refusal, cluster.workers![worker.id]]).toEqual([1, null, worker]);
  });

  it('knows the CPUs of its grant, whatever its variables', async () => {
    await setUp();
    const { worker, line } = await fork({ env: { NUMALIGN_CPUS: '7', NUMALIGN_GRANT: 'none' } });
    expect(line).toMatchObject({ granted: `${worker.grant!.cpus}`, grant: worker.grant!.uid });
  });

  it('has its CPUs until it ends: they cannot be released below it', async () => {
    await setUp();
    const { worker } = await fork();
    expect(await errorOf(() => worker.grant!.release())).toMatchObject({ code: 'ERR_CHILD_ALIVE' });
  });

  it('is in the events of cluster, with its grant from the first on', async () => {
    await setUp();
    const seen: string[] = [];
    const note = (event: string) => (worker: GrantedWorker) =>
      void seen.push(`${event} ${worker.grant?.cpus.size}`);
    const listeners = ['fork', 'online', 'disconnect', 'exit'].map((event) => [event, note(event)] as const);
    for (const [event, listener] of listeners) cluster.on(event, listener);
    const { worker } = await fork({ env: { TASK: 'wait' } });
    worker.disconnect();
    await once(worker, 'exit');
    for (const [event, listener] of listeners) cluster.off(event, listener);
    expect(seen.sort()).toEqual(['disconnect 1', 'exit 1', 'fork 1', 'online 1']);
  });

  it('has the streams of the settings, followed by the lock of its grant’s owner', async () => {
    await setUp();
    const setups: object[] = [];
    const note = (settings: object) => void setups.push({ ...settings });
    cluster.on('setup', note);
    onTestFinished(() => void cluster.off('setup', note));
    const open = (pid: number) =>
      readdirSync(`/proc/${pid}/fd`).map((fd) => {
        try {
          return readlinkSync(`/proc/${pid}/fd/${fd}`);
        } catch {
          return '';
        }
      });
    const stdio = ['ignore', 'pipe', 'inherit', 'ipc', 'pipe'];
    cluster.setupPrimary({ stdio });
    const { worker } = await fork();
    expect(worker.process.stdio.map((stream) => stream !== null)).toEqual([
      ...[false, true, false, false, true, false],
    ]);
    expect(open(worker.process.pid!).some((path) => path.includes('/owners/'))).toBe(true);
    expect(cluster.settings.stdio).toEqual(stdio);
    expect(setups.at(-1)).toMatchObject({ stdio });
    expect(setups.at(-1)).not.toHaveProperty('manager');
    worker.kill('SIGKILL');
    await once(worker, 'exit');

    cluster.setupPrimary({ stdio: undefined, silent: true });
    const { worker: silent } = await fork();
    expect(silent.process.stdout).not.toBeNull();
    expect(cluster.settings.stdio).toBeUndefined();
  });

  it('fails with the error of its start, for CPUs that it gives back', async () => {
    const manager = await setUp();
    const { acquire } = manager;
    let requests = 0;
    Object.assign(manager, {
      acquire: async (...args: Parameters<typeof acquire>) => {
        requests++;
        const grant = await Reflect.apply(acquire, manager, args);
        const startChild = () => {
          throw new NumalignError('ERR_SYSCALL', 'no process');
        };
        return Object.assign(grant, { startChild });
      },
    });
    expect(await errorOf(() => cluster.fork())).toMatchObject({ code: 'ERR_SYSCALL' });
    expect(requests).toBe(1);
    await expect.poll(() => manager.grants()).toEqual([]);
  });

  it('does not exist, and nothing is granted, if node:cluster does not fork it', async () => {
    const manager = await setUp();
    cluster.setupPrimary({ stdio: ['ignore', 'ignore', 'ignore'] });
    onTestFinished(() => cluster.setupPrimary({ stdio: undefined }));
    expect(await errorOf(() => cluster.fork())).toMatchObject({ code: 'ERR_CHILD_PROCESS_IPC_REQUIRED' });
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(Object.values(cluster.workers!)).toEqual([]);
  });

  it('does not exist, and nothing is granted, if the kernel does not start it', async () => {
    const manager = await setUp();
    cluster.setupPrimary({ cwd: '/no/such/folder' });
    onTestFinished(() => cluster.setupPrimary({ cwd: undefined }));
    for (const options of [{}, { optional: true, cpu: ALL.size }]) {
      expect(await errorOf(() => cluster.fork(options))).toMatchObject({ code: 'ENOENT' });
      await expect.poll(() => manager.grants()).toEqual([]);
      await expect.poll(() => Object.values(cluster.workers!)).toEqual([]);
    }
  });

  it('does not exist if its CPUs are taken', async () => {
    await setUp();
    const error = await errorOf(() => cluster.fork({ cpu: ALL.size }));
    expect(error).toBeInstanceOf(AdmissionError);
    expect(Object.values(cluster.workers!)).toEqual([]);
  });

  it('does not exist with invalid options', async () => {
    const manager = await setUp();
    const wrong: [options: object, value: unknown][] = [
      [{ owner: 'persistent' }, 'owner'],
      [{ parts: { main: 1 } }, 'parts'],
      [{ optinal: true }, 'optinal'],
      [{ PORT: '80' }, 'PORT'],
      [{ cpu: 0 }, 0],
      [{ env: 'PORT=80' }, 'PORT=80'],
      [{ optional: 'yes' }, 'yes'],
      [{ respawn: { limit: 0 } }, 0],
      [{ respawn: { most: 1 } }, 'most'],
      [{ respawn: 3 }, 3],
      [{ quiet: 'very' }, 'very'],
    ];
    for (const [options, value] of wrong) {
      const error = await errorOf(() => cluster.fork(options));
      expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { value } });
    }
    expect([Object.values(cluster.workers!), manager.grants()]).toEqual([[], []]);
  });
});

describe('a manager that could not be opened', () => {
  it('is opened again at the next fork', async () => {
    await setUp();
    const folder = dirname(makeStateDir());
    const stateDir = join(folder, 'later', 'state');
    cluster.setupPrimary({ manager: { stateDir } });
    writeFileSync(join(folder, 'later'), 'no folder');
    await errorOf(() => cluster.fork());
    rmSync(join(folder, 'later'));
    mkdirSync(join(folder, 'later'));
    const { worker } = await fork();
    expect(worker.grant!.cpus.size).toBe(1);
  });
});

describe('an optional worker', () => {
  it('has its own CPUs if there are any', async () => {
    await setUp();
    const { worker, line } = await fork({ optional: true });
    expect([line.cpus, worker.refusal]).toEqual([`${worker.grant!.cpus}`, null]);
  });

  it('runs in the shared pool if there are none, says so, and leaves CPUs that are granted later', async () => {
    const manager = await setUp();
    const first = await manager.acquire({ cpu: ALL.size - 1 });
    const { worker, line } = await fork({ optional: true });
    expect(line).toEqual({ cpus: `${manager.sharedPool()}`, grant: '' });
    expect(worker.grant).toBeNull();
    expect(worker.refusal).toBeInstanceOf(AdmissionError);
    const { pid } = worker.process;
    expect(manager.sharedMembers()).toContainEqual(expect.objectContaining({ pid }));

    await first.release();
    expect(maskOf(pid!)).toBe(`${ALL}`);
    const second = await manager.acquire({ cpu: 1 });
    expect(maskOf(pid!)).toBe(`${ALL.difference(second.cpus)}`);
    await second.release();
  });

  it('runs like any process if there is no manager, and says why', async () => {
    await setUp();
    const config = { stateDir: '/proc/no-such-folder' };
    const empty = await openManager({ ...config, optional: true });
    for (const manager of [config, empty]) {
      cluster.setupPrimary({ manager });
      const { worker, line } = await fork({ optional: true });
      expect([line.cpus, worker.grant]).toEqual([`${ALL}`, null]);
      expect(worker.refusal).toBeInstanceOf(NumalignError);
      expect(await errorOf(() => cluster.fork())).toMatchObject({ code: worker.refusal!.code });
    }
  });

  it('is in the shared pool even if the primary runs on its own CPUs', async () => {
    const manager = await setUp();
    const own = await manager.acquire({ cpu: ALL.size - 1 });
    own.pin();
    const { worker, line } = await fork({ optional: true });
    expect(line.cpus).toBe(`${manager.sharedPool()}`);
    await own.release();
    expect(maskOf(worker.process.pid!)).toBe(`${ALL}`);
  });
});

describe('a worker whose primary has acquired by numalign/preload', () => {
  it('has what it was forked with, and acquires nothing', async () => {
    const stateDir = makeStateDir();
    const env = {
      ...process.env,
      NUMALIGN_ACQUIRE: JSON.stringify({ cpu: ALL.size - 1 }),
      NUMALIGN_MANAGER: JSON.stringify({ stateDir }),
      STATE_DIR: stateDir,
      FORKS: '[{ "optional": true }]',
    };
    const program = ['--import', file('../../dist/preload.js'), file('primary.mjs')];
    const primary = spawn(process.execPath, program, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void primary.kill('SIGKILL'));
    const [line] = (await once(createInterface({ input: primary.stdout }), 'line')) as [string];
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    const [{ pid, cpus, isGranted }] = JSON.parse(line);
    expect([cpus, isGranted]).toEqual([`${manager.sharedPool()}`, false]);
    expect(manager.grants()).toMatchObject([{ owner: { pid: primary.pid } }]);
    expect(pid).not.toBe(primary.pid);
  });
});

describe('the cluster of a primary', () => {
  it('is node:cluster in everything that it does not replace', () => {
    expect(cluster.isPrimary && cluster.isMaster && !cluster.isWorker).toBe(true);
    for (const name of [
      'workers',
      'settings',
      'SCHED_RR',
      'SCHED_NONE',
      'Worker',
      'schedulingPolicy',
    ] as const)
      expect(cluster[name]).toBe(Reflect.get(nodeCluster, name));
    const before = cluster.schedulingPolicy;
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    expect(nodeCluster.schedulingPolicy).toBe(nodeCluster.SCHED_NONE);
    cluster.schedulingPolicy = before;
    const listener = () => {};
    expect(cluster.on('listening', listener)).toBe(cluster);
    expect(nodeCluster.listeners('listening')).toEqual([listener]);
    cluster.off('listening', listener);
    expect(nodeCluster.listenerCount('listening')).toBe(0);
    expect('fork' in cluster && 'restart' in cluster && 'on' in cluster).toBe(true);
  });

  it('has the named exports of node:cluster', () => {
    const names = Object.keys(nodeCluster).filter((key) => !key.startsWith('_'));
    expect(Object.keys(required)).toEqual(expect.arrayContaining(names));
    expect(required).toMatchObject({ fork: cluster.fork, restart: cluster.restart, default: cluster });
  });
});
