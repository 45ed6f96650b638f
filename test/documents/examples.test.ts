// needs: documents
// The examples as a user runs them: separate processes on this machine, in a state folder of the
// test.
import { spawn, spawnSync } from 'node:child_process';
import { on, once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import { openManager } from '../../lib/opening/open-manager.js';
import { makeStateDir } from '../support/state-dir.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

function command(name: string, stateDir: string, env: Record<string, string> = {}) {
  return [
    `${ROOT}examples/${name}`,
    { cwd: ROOT, env: { ...process.env, STATE_DIR: stateDir, ...env } },
  ] as const;
}

function run(name: string, stateDir: string, args: string[] = []) {
  const [path, options] = command(name, stateDir);
  const { status, stdout, stderr } = spawnSync(process.execPath, [path, ...args], {
    ...options,
    encoding: 'utf8',
  });
  return { status, stdout, stderr, lines: stdout.trim().split('\n') };
}

async function grants(stateDir: string) {
  const manager = await openManager({ stateDir });
  onTestFinished(() => manager.close());
  return manager.grants();
}

describe('examples/http-server.mjs', () => {
  it('answers from its own CPU, and gives it back at SIGTERM', async () => {
    const stateDir = makeStateDir();
    const [path, options] = command('http-server.mjs', stateDir, { PORT: '0' });
    const server = spawn(process.execPath, [path], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void server.kill('SIGKILL'));
    const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
    const [, url, cpu] = /^(http:\S+) on CPU (\d+), enforcement "\w+"$/.exec(line)!;

    const [{ name, cpus, owner }] = (await grants(stateDir)) as [Awaited<ReturnType<typeof grants>>[number]];
    expect([name, `${cpus}`, owner.pid]).toEqual(['http-server', cpu, server.pid]);
    expect(readFileSync(`/proc/${server.pid}/status`, 'utf8')).toContain(`Cpus_allowed_list:\t${cpu}\n`);
    expect(await (await fetch(`${url}orders`)).json()).toEqual({ path: '/orders', cpus: cpu });
    const { runTimeNs } = (await (await fetch(`${url}audit`)).json()) as { runTimeNs: number };
    expect(runTimeNs).toBeGreaterThan(0);

    server.kill('SIGTERM');
    expect(await once(server, 'exit')).toEqual([0, null]);
    expect(await grants(stateDir)).toEqual([]);
  });
});

describe('examples/cluster-server.mjs', () => {
  it('answers from a process on every free CPU, restarts them, and gives all CPUs back', async () => {
    const stateDir = makeStateDir();
    const [path, options] = command('cluster-server.mjs', stateDir, { PORT: '0', WORKERS: '2' });
    const server = spawn(process.execPath, [path], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void server.kill('SIGKILL'));
    const lines = on(createInterface({ input: server.stdout }), 'line');
    const next = async () => ((await lines.next()).value as [string])[0];
    const started = [await next(), await next()].map(
      (line) =>
        /^(http:\S+) by process (\d+) on (?:CPU (\d+), enforcement "\w+"|the shared pool)$/.exec(line)!,
    );
    const places = new Map(started.map(([, , pid, cpu]) => [Number(pid), cpu ?? 'shared']));
    const held = await grants(stateDir);
    expect(held.map(({ cpus }) => `${cpus}`)).toEqual([...places.values()].filter((cpu) => cpu !== 'shared'));
    const answer = (await (await fetch(started[0]![1]!)).json()) as { pid: number; cpus: string };
    expect(places.get(answer.pid)).toBe(answer.cpus);

    server.kill('SIGHUP');
    const restarted = [await next(), await next(), await next()];
    expect(restarted.map((line) => line.replace(/ .*/, ''))).toEqual([
      ...[started[0]![1], started[0]![1]],
      'restarted',
    ]);
    server.kill('SIGTERM');
    expect(await once(server, 'exit')).toEqual([0, null]);
    expect(await grants(stateDir)).toEqual([]);
  });
});

describe('examples/worker-pool.mjs', () => {
  it('does every job on a CPU of one worker, and gives all of them back', async () => {
    const stateDir = makeStateDir();
    const { status, stderr, lines } = run('worker-pool.mjs', stateDir);
    expect([status, stderr]).toEqual([0, '']);
    const [, workers, granted] = /^(\d+) workers? on CPUs? (\S+) of NUMA node \d+, enforcement "\w+"$/.exec(
      lines[0]!,
    )!;
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    expect(Number(workers)).toBe(Math.min(4, manager.freeCpus().size - 1));
    const jobs = lines
      .slice(1)
      .map((line) => /^CPU (\d+): (\d+) primes below (\d+)$/.exec(line)!.slice(1).map(Number));
    for (const [cpu] of jobs) expect(CpuSet.parse(granted!).has(cpu!)).toBe(true);
    expect(jobs.map(([, primes]) => primes).sort((a, b) => a! - b!)).toEqual([
      1229, 2262, 3245, 4203, 5133, 6057, 6935, 7837,
    ]);
    expect(manager.grants()).toEqual([]);
  });
});

describe('examples/parts.mjs', () => {
  it('runs main thread, Worker and all others on CPUs of the grant, separate if there are enough', async () => {
    const stateDir = makeStateDir();
    const { status, stderr, lines } = run('parts.mjs', stateDir);
    expect([status, stderr]).toEqual([0, '']);
    const places = lines.map((line) => /^(?:main thread|Worker|\d+ others): CPUs (\S+)$/.exec(line)![1]!);
    expect(places).toHaveLength(3);
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    const granted = Math.min(4, manager.freeCpus().size - 1);
    expect(new Set(places).size).toBe(Math.min(3, granted));
    expect(places.map(CpuSet.parse).reduce((a, b) => a.union(b)).size).toBe(granted);
    expect(manager.grants()).toEqual([]);
  });
});

describe('examples/child-processes.mjs', () => {
  it('starts a killed worker again on its CPU, and gives all CPUs back at SIGTERM', async () => {
    const stateDir = makeStateDir();
    const [path, options] = command('child-processes.mjs', stateDir, { WORKERS: '1' });
    const supervisor = spawn(process.execPath, [path], { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void supervisor.kill('SIGKILL'));
    const lines = createInterface({ input: supervisor.stdout })[Symbol.asyncIterator]();
    const next = async () => String((await lines.next()).value);
    const started = async () =>
      /^media-0: process (\d+) on CPU (\d+), threads 1$/
        .exec(await next())!
        .slice(1)
        .map(Number);

    const [first, cpu] = await started();
    expect((await grants(stateDir)).map(({ name, cpus }) => [name, `${cpus}`])).toEqual([
      ['media-0', `${cpu}`],
    ]);
    process.kill(first!, 'SIGKILL');
    expect(await next()).toBe(`media-0: process ${first} has ended (SIGKILL)`);
    const [second, again] = await started();
    expect([second === first, again]).toEqual([false, cpu]);

    supervisor.kill('SIGTERM');
    expect(await next()).toBe(`media-0: process ${second} has ended (SIGTERM)`);
    expect(await once(supervisor, 'exit')).toEqual([0, null]);
    expect(await grants(stateDir)).toEqual([]);
  });
});

describe('examples/pod-agent.mjs', () => {
  it('runs the containers of a pod on their CPUs, and releases it with the last of them', async () => {
    const stateDir = makeStateDir();
    const { status, stderr, lines } = run('pod-agent.mjs', stateDir, ['examples/pod.yaml']);
    expect([status, stderr]).toEqual([0, '']);
    const started = (name: string) =>
      lines
        .map((line) => new RegExp(`^gateway/${name}: process \\d+ on (.*)$`).exec(line)?.[1])
        .find(Boolean);
    const cpu = started('server');
    expect(started('warm-up')).toBe(cpu);
    expect(started('log')).toBe('the shared pool');
    // The kernel's values in the containers themselves.
    const masks = lines
      .filter((line) => line.startsWith('Cpus_allowed_list:'))
      .map((line) => line.split('\t')[1]!);
    expect(masks).toHaveLength(3);
    expect(masks.filter((mask) => mask === cpu)).toHaveLength(2);
    expect(lines.filter((line) => line.endsWith('ended with 0'))).toHaveLength(3);
    const manager = await openManager({ stateDir });
    onTestFinished(() => manager.close());
    expect(lines.at(-1)).toBe(`shared pool: ${manager.sharedPool()}`);
    expect(manager.grants()).toEqual([]);
  });

  it('ends a sidecar after the containers, and says why a pod is rejected', () => {
    const stateDir = makeStateDir();
    const pod = (name: string, cpu: number) => `apiVersion: v1
kind: Pod
metadata: { name: ${name} }
spec:
  initContainers:
    - { name: proxy, restartPolicy: Always, command: [sleep, '60'], resources: { limits: { cpu: 100m, memory: 1Mi } } }
  containers:
    - { name: main, command: ['true'], resources: { limits: { cpu: ${cpu}, memory: 1Mi } } }
`;
    const file = join(dirname(stateDir), 'pods.yaml');
    writeFileSync(file, `${pod('whale', 4096)}---\n${pod('minnow', 1)}`);
    const { status, stderr, stdout } = run('pod-agent.mjs', stateDir, [file]);
    expect(status).toBe(1);
    expect(stderr).toContain('cpu: 4096 requested');
    expect(stdout).not.toContain('whale/');
    expect(stdout).toMatch(/minnow\/main: ended with 0\n.*minnow\/proxy: ended with SIGTERM\n/s);
  });

  it('starts no further container if an earlier one fails, and releases the pod', async () => {
    const stateDir = makeStateDir();
    const file = join(dirname(stateDir), 'pod.yaml');
    writeFileSync(
      file,
      `kind: Pod
metadata: { name: minnow }
spec:
  initContainers: [{ name: setup, command: ['false'] }]
  containers: [{ name: main, command: ['true'] }]
`,
    );
    const { status, stderr, stdout } = run('pod-agent.mjs', stateDir, [file]);
    expect([status, stderr]).toEqual([
      1,
      'minnow: init container setup has failed: no other container is started\n',
    ]);
    expect(stdout).toContain('minnow/setup: ended with 1\n');
    expect(stdout).not.toContain('minnow/main');
    expect(await grants(stateDir)).toEqual([]);
  });
});

describe('examples/piscina-pool.mjs', () => {
  it('has a Worker for each CPU, each placed at its birth, and gives all of them back', async () => {
    const stateDir = makeStateDir();
    const { status, stderr, lines } = run('piscina-pool.mjs', stateDir);
    expect([status, stderr]).toEqual([0, '']);
    const placed = lines.flatMap((line) => /^a Worker on CPU (\d+), atBirth$/.exec(line)?.[1] ?? []);
    expect(new Set(placed).size).toBe(placed.length);
    const jobs = lines
      .slice(placed.length)
      .map((line) => /^CPU (\d+): the first (\d+) squares are (\d+)$/.exec(line)!);
    expect(jobs).toHaveLength(3);
    for (const [, cpu, count, sum] of jobs) {
      const n = Number(count);
      expect(placed).toContain(cpu);
      expect(Number(sum)).toBe((n * (n + 1) * (2 * n + 1)) / 6);
    }
    expect(await grants(stateDir)).toEqual([]);
  });
});
