// needs: agents
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { end, listen } from '@numalign/page/listening';
import { openManager } from 'numalign';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Agent } from '../../../test/support/agent.js';
import { firstAndAnother } from '../../../test/support/budget.mjs';
import { makeNewer } from '../../../test/support/newer-state.js';
import { Scrape } from '../../../test/support/scrape.js';
import { makeStateDir } from '../../../test/support/state-dir.js';
import { ailments } from '../lib/agent/agent-health.js';
import { Rounds } from '../lib/agent/agent-rounds.js';
import { newFolder, numalign, type Running, type StartOptions, start, until } from './numalign.js';

interface Ready {
  url: string;
  host: string;
  port: number;
  pid: number;
  stateDir: string;
  scope: string;
}

/** An agent that listens, on a port of its own. */
async function agent(args: readonly string[], options?: StartOptions): Promise<Running & { ready: Ready }> {
  const running = start(['agent', '--port', '0', '--output', 'json', ...args], options);
  const line = await until(() => {
    if (running.process.exitCode !== null) throw new Error(running.output.stderr);
    return running.output.stdout.includes('\n') && running.output.stdout;
  }, 'the line of an agent that listens');
  return { ...running, ready: JSON.parse(line) as Ready };
}

async function scrape({ ready }: { ready: Ready }): Promise<Scrape> {
  const response = await fetch(`${ready.url}/metrics`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  return new Scrape(await response.text());
}

async function healthOf({ ready }: { ready: Ready }): Promise<[number, string]> {
  const response = await fetch(`${ready.url}/healthz`);
  return [response.status, await response.text()];
}

const EXCLUSIVE = 'kubelet_cpu_manager_exclusive_cpu_allocation_count';

describe('numalign agent', () => {
  it('serves the metrics of the state, as other processes change it', async () => {
    const folder = newFolder();
    const served = await agent(['--reserved', '0', '--state-dir', folder]);
    expect(served.ready).toEqual({
      url: `http://127.0.0.1:${served.ready.port}`,
      host: '127.0.0.1',
      port: expect.any(Number),
      pid: served.process.pid,
      stateDir: folder,
      scope: 'private',
    });
    // It listens only on that address.
    await expect(fetch(`http://127.0.0.2:${served.ready.port}/metrics`)).rejects.toThrow('fetch failed');
    const before = await scrape(served);
    const other = new Agent();
    await other.tell('open', { stateDir: folder });
    const { uid, cpus } = await other.tell('acquire', { cpu: 1, memory: '64Mi', name: 'gateway' });
    expect(cpus).not.toBe('');
    expect((await other.ask('acquire', { cpu: 4096 })).error?.code).toBe('ERR_INSUFFICIENT_CPUS');

    const added = async () => (await scrape(served)).value('numalign_grants_added_total') === 1;
    await until(added, 'the grant among those that have come');
    const page = await scrape(served);
    const difference = (name: string, labels?: Record<string, string>) =>
      page.value(name, labels)! - before.value(name, labels)!;
    expect(page.value(EXCLUSIVE)).toBe(1);
    expect(page.value('numalign_reserved_cpus')).toBe(1);
    expect(difference('kubelet_cpu_manager_shared_pool_size_millicores')).toBe(-1000);
    expect(difference('numalign_shared_pool_cpus')).toBe(-1);
    expect(difference('numalign_state_generation')).toBe(1);
    expect(difference('numalign_grants', { enforcement: 'members' })).toBe(1);
    // It admits nothing itself, and other processes' rejections leave no trace.
    expect(page.types).not.toHaveProperty('kubelet_topology_manager_admission_requests_total');
    expect(page.types).not.toHaveProperty('numalign_admissions_total');
    expect(page.value('numalign_grant_interrupts_total', { grant: 'gateway' })).toBeGreaterThanOrEqual(0);

    await other.tell('release', { uid });
    expect((await scrape(served)).value(EXCLUSIVE)).toBe(0);
  });

  it('names as many grants as its option says, and measures memory elsewhere on request', async () => {
    const folder = makeStateDir();
    const more = ['--max-grants', '1', '--memory-elsewhere'];
    const served = await agent(['--state-dir', folder, ...more]);
    const manager = await openManager({ stateDir: folder });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
    grant.pin();
    const shared = [{ name: 'main' }];
    const pods = [];
    for (const name of ['web', 'db']) pods.push(await manager.admit({ name, containers: shared }));
    const page = await scrape(served);
    const recorded = { level: 'recorded' };
    expect(page.count('numalign_grant_info')).toBe(1);
    expect(page.value('numalign_grant_enforcement', { grant: 'other', ...recorded })).toBe(2);
    const { offNodeBytes } = manager.audit(grant.uid, { memory: true });
    expect(page.value('numalign_grant_memory_elsewhere_bytes', { grant: 'gateway' })).toBe(
      offNodeBytes ?? undefined,
    );
    for (const held of [grant, ...pods]) await held.release();
    const wrong = await numalign(['agent', '--max-grants', '10001']);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('a number from 0 to 10000')]);
  });

  it('takes back the grants of a dead process', async () => {
    const folder = newFolder();
    const served = await agent(['--reserved', '0', '--state-dir', folder]);
    const other = new Agent();
    await other.tell('open', { stateDir: folder });
    await other.tell('acquire', { cpu: 1 });
    await until(async () => (await scrape(served)).value('numalign_grants_added_total') === 1, 'the grant');
    await other.kill();
    await until(async () => (await scrape(served)).value('numalign_grants_removed_total') === 1, 'its end');
    const page = await scrape(served);
    expect([page.value(EXCLUSIVE), page.value('numalign_dead_grants')]).toEqual([0, 0]);
  });

  it('is healthy while its state can be read and changed, else says what is wrong', async () => {
    const folder = newFolder();
    const served = await agent(['--state-dir', folder]);
    expect(await healthOf(served)).toEqual([200, 'ok\n']);
    makeNewer(folder, true);
    expect(await healthOf(served)).toEqual([
      503,
      expect.stringMatching(/^nothing is granted: .* version 99.*\n$/),
    ]);
    makeNewer(folder);
    expect(await healthOf(served)).toEqual([
      503,
      expect.stringMatching(/^the state cannot be read: .* version 99.*\n$/),
    ]);
    expect((await scrape(served)).value('numalign_state_usable')).toBe(0);
  });

  it('reports a removed folder, and is healthy again when it is back', async () => {
    const folder = newFolder();
    const stateDir = join(folder, 'state');
    const served = await agent(['--state-dir', stateDir]);
    renameSync(stateDir, join(folder, 'away'));
    const [status, text] = await healthOf(served);
    expect(status).toBe(503);
    expect(text).toContain(
      `the state folder cannot be written: ENOENT: no such file or directory, access '${stateDir}'\n`,
    );
    renameSync(join(folder, 'away'), stateDir);
    expect(await healthOf(served)).toEqual([200, 'ok\n']);
  });

  it('is not healthy after a failed round of reconciliation', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    expect(ailments(manager, undefined)).toEqual([]);
    expect(ailments(manager, new Error('no such cgroup'))).toEqual([
      'reconciling has failed: no such cgroup',
    ]);
  });

  it('serves read-only pages and nothing else', async () => {
    const { ready } = await agent(['--state-dir', newFolder()]);
    const ask = async (path: string, method: string) => {
      const response = await fetch(`${ready.url}${path}`, { method });
      return [response.status, response.headers.get('allow'), (await response.text()) === ''];
    };
    expect(await ask('/metrics', 'HEAD')).toEqual([200, null, true]);
    expect(await ask('/healthz?verbose=1', 'GET')).toEqual([200, null, false]);
    expect(await ask('/metrics', 'POST')).toEqual([405, 'GET, HEAD', false]);
    expect(await ask('/healthz', 'DELETE')).toEqual([405, 'GET, HEAD', false]);
    for (const path of ['/metrics/', '/healthz/../metrics/x', '/toString']) {
      expect(await ask(path, 'GET')).toEqual([404, null, false]);
    }
  });

  it.each(firstAndAnother(['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const))(
    'ends with 0 at %s, even with an open connection, and leaves grants unchanged',
    async (name) => {
      const folder = newFolder();
      const served = await agent(['--state-dir', folder]);
      const other = new Agent();
      await other.tell('open', { stateDir: folder });
      await other.tell('acquire', { cpu: 1 });
      // fetch keeps its connection alive; the other one is in the middle of a request.
      await scrape(served);
      const half = connect(served.ready.port, served.ready.host).on('error', () => {});
      onTestFinished(() => void half.destroy());
      await once(half, 'connect');
      half.write('GET /metrics HTTP/1.1\r\nHost: ');
      served.process.kill(name);
      expect(await served.ended).toMatchObject({ code: 0, signal: null, stderr: '' });
      expect(await other.tell('grants')).toMatchObject([{ alive: true }]);
      // A living owner would rewrite its files while the folder is being removed.
      await other.kill();
    },
  );

  it('says that a port is in use, and ends', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as { port: number };
    const { code, stdout, stderr } = await numalign([
      'agent',
      '--port',
      String(port),
      '--state-dir',
      newFolder(),
    ]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toBe(`numalign: cannot listen on 127.0.0.1:${port}: the port is in use [ERR_SYSCALL]\n`);
  });

  it('continues if a connection cannot be accepted', async () => {
    const messages: string[] = [];
    const { server } = await listen(
      { host: '127.0.0.1', port: 0 },
      () => {},
      ({ message }) => messages.push(message),
    );
    onTestFinished(() => end(server));
    for (const message of ['accept EMFILE', 'accept ENFILE']) server.emit('error', new Error(message));
    expect(messages).toEqual(['accept EMFILE', 'accept ENFILE']);
    expect(server.listening).toBe(true);
  });

  it('prints the address where it listens', async () => {
    const folder = newFolder();
    const running = start(['agent', '--listen', '127.0.0.2:0', '--state-dir', folder]);
    const line = await until(() => /^(.*)\n/.exec(running.output.stdout)?.[1], 'the line');
    const [, url, rest] = /^listening on (http:\/\/127\.0\.0\.2:\d+): (.*)$/.exec(line) ?? [];
    expect(rest).toBe(`a page at /, /metrics and /healthz of ${folder} (private)`);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it('serves a page of the machine, as long as a browser is open', async () => {
    const folder = newFolder();
    const served = await agent(['--state-dir', folder]);
    const other = new Agent();
    await other.tell('open', { stateDir: folder });
    await other.tell('acquire', { cpu: 1, name: 'gateway' });
    const page = await fetch(served.ready.url);
    expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await page.text()).toMatch(/<svg .*gateway/s);
    const events = await fetch(`${served.ready.url}/events`);
    served.process.kill('SIGTERM');
    expect(await events.text()).toContain('gateway');
    expect(await served.ended).toMatchObject({ code: 0, stderr: '' });
    await other.kill();
  });

  it('asks for the token of its page, and not for metrics', async () => {
    const folder = newFolder();
    const file = join(folder, 'token');
    writeFileSync(file, 'abcdefgh12345678\n');
    const { ready } = await agent(['--state-dir', folder, '--page-token-file', file]);
    const authorization = `Basic ${btoa('any:abcdefgh12345678')}`;
    const statusOf = async (path: string, headers = {}) =>
      (await fetch(ready.url + path, { headers })).status;
    expect(await statusOf('/')).toBe(401);
    expect(await statusOf('/', { authorization })).toBe(200);
    expect(await statusOf('/metrics')).toBe(200);
    writeFileSync(file, 'short');
    const args = ['agent', '--state-dir', folder, '--page-token-file'];
    const wrong = await numalign([...args, file]);
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringMatching(/16 or more .*ERR_INVALID_OPTION/)]);
    const missing = await numalign([...args, `${file}s`]);
    expect([missing.code, missing.stderr]).toEqual([1, expect.stringMatching(/ENOENT.*ERR_SYSCALL/)]);
  });

  it.each([
    [['--port', '65536'], 'a number from 0 to 65535'],
    [['--port', 'http'], 'a number from 0 to 65535'],
    [['--listen', 'localhost:9479'], 'an IP address and a port'],
    [['--listen', '::1:9479'], 'an IP address and a port'],
    [['--listen', '[127.0.0.1]:9479'], 'an IP address and a port'],
    [['--listen', '127.0.0.1'], 'an IP address and a port'],
    [['--port', '0', '--listen', '127.0.0.1:0'], 'cannot be used with'],
    [['--config', '-', '--devices', '-'], 'only one of --config, --devices can be the standard input'],
    [['--isolation', 'prefer'], 'unknown option'],
    [['now'], 'too many arguments'],
  ])('calls %j a wrong command line', async (args, message) => {
    const { code, stderr } = await numalign(['agent', ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe('its rounds of reconciliation', () => {
  it('run one at a time, and once more if something changed meanwhile', async () => {
    const ends: (() => void)[] = [];
    const rounds = new Rounds({ reconcile: () => new Promise<void>((resolve) => ends.push(resolve)) });
    onTestFinished(() => rounds.stop());
    rounds.run();
    rounds.run();
    rounds.run();
    expect(ends).toHaveLength(1);
    ends[0]!();
    await until(() => ends.length === 2, 'the second round');
    rounds.stop();
    ends[1]!();
    rounds.run();
    await new Promise((resolve) => setImmediate(resolve));
    expect(ends).toHaveLength(2);
  });

  it('report a failure until one succeeds', async () => {
    const failures = [new Error('no such cgroup')];
    const rounds = new Rounds({
      reconcile: async () => {
        const failure = failures.pop();
        if (failure) throw failure;
      },
    });
    onTestFinished(() => rounds.stop());
    rounds.run();
    await until(() => rounds.lastFailure instanceof Error, 'the failure');
    rounds.run();
    await until(() => rounds.lastFailure === undefined, 'the end of it');
  });
});
