import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { CpuSet, openManager } from 'numalign';
import { type CpuManagerState, formatCpuManagerState } from 'numalign/kubelet';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { isLong } from '../../../../test/support/budget.mjs';
import { errorOf } from '../../../../test/support/error-of.js';
import { createProgram } from '../../lib/cli/program.js';
import { FakeRuntime } from '../support/fake-runtime.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { socketFolder } from '../support/socket-folder.js';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

interface Command {
  readonly child: ChildProcess;
  /** Exit code and what is on stderr, once it has ended. */
  readonly end: Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }>;
}

function numalignNode(...args: string[]): Command {
  return numalignNodeIn(process.env, ...args);
}

function numalignNodeIn(env: NodeJS.ProcessEnv, ...args: string[]): Command {
  const child = spawn(process.execPath, [MAIN, ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const end = Promise.all([once(child, 'exit'), text(child.stdout), text(child.stderr)]).then(
    ([[code], stdout, stderr]) => ({ code, stdout, stderr }),
  );
  return { child, end };
}

/** Arguments for a node of the test's own. */
function place() {
  const { folder, socketPath: socket, remove } = socketFolder();
  onTestFinished(remove);
  const kubelet = join(folder, 'kubelet');
  mkdirSync(kubelet);
  const args = ['--state-dir', join(folder, 'state'), '--nri-socket', socket, '--kubelet-folder', kubelet];
  return { socket, kubelet, args };
}

/** The state file of a kubelet with the policy static. */
function giveOut(kubelet: string, entries: CpuManagerState['entries']): void {
  const text = formatCpuManagerState({ policyName: 'static', defaultCpuSet: CpuSet.parse('0'), entries });
  writeFileSync(join(kubelet, 'cpu_manager_state'), text);
}

describe('numalign-node', () => {
  it('places the containers of a runtime until it is ended', async () => {
    const { socket, args } = place();
    const runtime = await FakeRuntime.listen(socket);
    onTestFinished(() => runtime.close());
    const { child, end } = numalignNode(...args);
    const plugin = await runtime.synchronizedPlugin();
    expect(plugin.registration).toMatchObject({ plugin_name: 'numalign', plugin_idx: '90' });
    const container = containerOf();
    const { adjust } = await plugin.createContainer(podOf(), container);
    expect(adjust.linux.resources.cpu.cpus).toMatch(/^[\d,-]+$/);
    child.kill('SIGTERM');
    expect(await end).toMatchObject({ code: 0, stdout: '' });
  });

  it.runIf(isLong)('opens no inspector at SIGUSR1', async () => {
    const { args } = place();
    const { child, end } = numalignNode(...args);
    await once(child.stderr!, 'data');
    child.kill('SIGUSR1');
    child.kill('SIGTERM');
    const { code, stderr } = await end;
    expect(code).toBe(0);
    expect(stderr).not.toContain('Debugger');
  });

  it('reads its configuration again at SIGHUP, and goes on', async () => {
    const { args, kubelet } = place();
    const file = join(kubelet, 'node.yaml');
    writeFileSync(file, 'kind: NodeConfiguration\npolicy: restricted\n');
    const { child, end } = numalignNode(...args, '--config', file);
    // It reads its configuration again from here on.
    createInterface(child.stderr!).on('line', (line) => {
      if (/waiting for the socket/.test(line)) child.kill('SIGHUP');
      if (/unchanged/.test(line)) child.kill('SIGTERM');
    });
    const { code, stderr } = await end;
    expect(code).toBe(0);
    expect(stderr).toMatch(/the configuration: policy: restricted \(file\)/);
  });

  it.runIf(isLong)('prints its configuration, and where each field comes from', async () => {
    const { stdout } = await numalignNode('config', '--policy', 'none', '--output', 'json').end;
    expect(JSON.parse(stdout)).toMatchObject({
      policy: { value: 'none', from: 'flag' },
      name: { value: 'numalign', from: 'default' },
    });
  });

  it.runIf(isLong)('can be ended while it waits for a runtime', async () => {
    const { child, end } = numalignNode(...place().args);
    await once(child.stderr!, 'data');
    child.kill('SIGINT');
    expect(await end).toMatchObject({ code: 0 });
  });

  it.runIf(isLong).each([
    ['is a shared member', undefined],
    ['in a pod leaves that to its container', '10.0.0.1'],
  ])('%s', async (_, host) => {
    const { KUBERNETES_SERVICE_HOST: _host, ...env } = process.env;
    const { args } = place();
    const pod = host === undefined ? {} : { KUBERNETES_SERVICE_HOST: host };
    const { child, end } = numalignNodeIn({ ...env, ...pod }, ...args);
    // It waits for the runtime.
    await once(child.stderr!, 'data');
    const manager = await openManager({ stateDir: args[1]!, readOnly: true });
    onTestFinished(() => manager.close());
    expect(manager.sharedMembers()).toMatchObject(host === undefined ? [{ pid: child.pid }] : []);
    child.kill('SIGTERM');
    await end;
  });

  it.runIf(isLong)('says that containers are placed one by one under scope pod', async () => {
    const { args, kubelet } = place();
    const file = join(kubelet, 'config.yaml');
    const kind = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
    writeFileSync(file, `${kind}cpuManagerPolicy: static\ntopologyManagerScope: pod\n`);
    const { child, end } = numalignNode(...args, '--kubelet-configuration', file);
    child.stderr!.on('data', (part) => /warn .*\n/.test(String(part)) && child.kill('SIGTERM'));
    expect((await end).stderr).toMatch(/warn {2}topologyManagerScope is pod.*each is placed by itself/);
  });

  it('refuses a kubelet that places containers itself, and says what to change', async () => {
    const { kubelet, args } = place();
    giveOut(kubelet, new Map());
    const { code, stderr } = await numalignNode(...args).end;
    expect(code).toBe(1);
    expect(stderr).toMatch(/cpuManagerPolicy: static.*set cpuManagerPolicy: none.*\[ERR_KUBELET_STATIC\]/);
  });

  it('serves a page with its rejections on request, until it is ended', async () => {
    const { socket, args } = place();
    const runtime = await FakeRuntime.listen(socket);
    onTestFinished(() => runtime.close());
    const { child, end } = numalignNode(...args, '--page', '127.0.0.1:0');
    const address = new Promise<string>((resolve) => {
      let lines = '';
      child.stderr!.on('data', (part) => {
        lines += part;
        if (/http:\S+\n/.test(lines)) resolve(lines);
      });
    });
    const plugin = await runtime.synchronizedPlugin();
    const [url] = /http:\S+/.exec(await address)!;
    await plugin.createContainer(podOf(), containerOf({ cpus: 100, memory: 2 ** 30 })).catch(() => {});
    expect(await (await fetch(url)).text()).toMatch(/<svg .*ERR_INSUFFICIENT_CPUS/s);
    const events = await fetch(`${url}/events`);
    child.kill('SIGTERM');
    expect(await events.text()).toContain('data: ');
    expect(await end).toMatchObject({ code: 0 });
  });

  it('serves metrics and health, and logs JSON, until it is ended', async () => {
    const { socket, args } = place();
    const flags = ['--listen', '127.0.0.1:0', '--log-format', 'json', '--max-grants', '0'];
    const { child, end } = numalignNode(...args, ...flags);
    const url = await new Promise<string>((resolve) => {
      child.stderr!.on('data', (part) => {
        const [found] = /http:[^"]+/.exec(`${part}`) ?? [];
        if (found) resolve(found);
      });
    });
    const ask = async (path: string) => {
      const answer = await fetch(url + path);
      return { status: answer.status, text: await answer.text() };
    };
    expect(await ask('/healthz')).toEqual({ status: 200, text: 'ok\n' });
    const early = await ask('/readyz');
    expect(early).toMatchObject({ status: 503, text: expect.stringMatching(/^\[-\] nri: .*nri\.sock/m) });
    const runtime = await FakeRuntime.listen(socket);
    onTestFinished(() => runtime.close());
    const plugin = await runtime.synchronizedPlugin();
    await expect.poll(() => ask('/readyz')).toMatchObject({ status: 200 });
    await plugin.createContainer(podOf(), containerOf({ cpus: 100, memory: 2 ** 30 })).catch(() => {});
    const { text } = await ask('/metrics');
    const refused = 'numalign_node_admissions_total{result="refused",reason="ERR_INSUFFICIENT_CPUS"} 1';
    for (const line of [refused, 'numalign_node_ready 1', /^process_resident_memory_bytes \d+$/m])
      expect(text).toMatch(line);
    expect(text).toMatch(/^numalign_node_info\{version="[\d.]+"\} 1$/m);
    expect(text).toMatch(/^numalign_admissions_total\{/m);
    child.kill('SIGTERM');
    const { code, stderr } = await end;
    expect(code).toBe(0);
    const lines = stderr.trimEnd().split('\n');
    const refusal = lines.map((line) => JSON.parse(line)).find(({ decision }) => decision === 'refuse');
    expect(refusal).toMatchObject({ level: 'warn', pod: 'default/web', container: 'main' });
  });

  it('logs the error that ends it as JSON, too', async () => {
    const { args } = place();
    const { code, stderr } = await numalignNode(...args, '--log-format', 'json', '--index', '7').end;
    expect(code).toBe(1);
    const last = JSON.parse(stderr.trimEnd().split('\n').at(-1)!);
    expect(last).toMatchObject({ level: 'error', code: 'ERR_NRI_INDEX', value: '7' });
  });

  it('keeps the record of such a kubelet without a plugin of the runtime', async () => {
    const { kubelet, args } = place();
    giveOut(kubelet, new Map([['pod-a', new Map([['app', CpuSet.parse('1')]])]]));
    const { child, end } = numalignNode(...args, '--no-nri');
    const manager = await openManager({ stateDir: args[1]!, readOnly: true });
    onTestFinished(() => manager.close());
    await expect.poll(() => String(manager.sharedPool())).toBe('0');
    child.kill('SIGTERM');
    expect(await end).toMatchObject({ code: 0 });
  });

  it.each([
    [['--policy', 'strict'], /best-effort/],
    [['--cgroup-root', '/none'], /\/none is not a cgroup hierarchy with cpusets \[ERR_CGROUP\]/],
    [['--kubelet-configuration', '/none'], /ERR_INVALID_OPTION/],
    [['--no-such-option'], /unknown option/],
    [['--page', 'localhost'], /an IP address and a port/],
    [['--listen', '9481'], /an IP address and a port/],
    [['--max-grants', '-1'], /from 0 to 10000/],
    [['--log-level', 'loud'], /debug, info, warn, error/],
    [['--log-format', 'xml'], /text, json/],
    [['--page-token-file', '/none'], /ERR_SYSCALL/],
    [['--config', '/none'], /\/none: it cannot be read.*ERR_INVALID_CONFIGURATION/],
    [['--kubeconfig', '/none', '--publish'], /ERR_KUBECONFIG/],
  ])('refuses %j', async (wrong, message) => {
    vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    onTestFinished(() => void vi.restoreAllMocks());
    const command = [process.execPath, MAIN, ...place().args, ...wrong];
    const error = await errorOf(() => createProgram().parseAsync(command));
    expect(`${error.message} [${error.code}]`).toMatch(message);
  });

  it('ends with 2 for a wrong command line', async () => {
    expect(await numalignNode('--no-such-option').end).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('unknown option'),
    });
  });

  it('checks no socket of plugins if containers are left to the runtime and the kubelet', async () => {
    const { kubelet, args } = place();
    giveOut(kubelet, new Map());
    const { stdout } = await numalignNode(...args, '--no-nri', '--check', '--json').end;
    const findings = JSON.parse(stdout) as { check: string; status: string }[];
    for (const name of ['nri-socket', 'cpu-manager'])
      expect(findings.find(({ check }) => check === name)).toMatchObject({ status: 'ok' });
  });

  it.each([
    ['no kubelet is there', 'none', []],
    ['its kubelet is not to be followed', '', ['--no-kubelet']],
  ])('says that it has nothing to do if containers are not its own and %s', async (_why, folder, more) => {
    const { kubelet, args } = place();
    const wrong = [...args, '--no-nri', '--kubelet-folder', join(kubelet, folder), ...more];
    const { code, stderr } = await numalignNode(...wrong).end;
    expect(stderr).toMatch(/nothing to do.*\[ERR_INVALID_OPTION\]/);
    expect(code).toBe(1);
  });

  it.runIf(isLong)('shows where to find the options without a command', async () => {
    expect((await numalignNode('--help').end).stdout).toContain('numalign-node run --help');
    expect((await numalignNode('run', '--help').end).stdout).toContain('--check');
  });

  it('checks the node without changing it', async () => {
    const { args } = place();
    const { code, stdout } = await numalignNode(...args, '--check', '--json').end;
    expect(code).toBe(1);
    const findings = JSON.parse(stdout) as { check: string; status: string }[];
    expect(findings.find(({ check }) => check === 'nri-socket')).toMatchObject({ status: 'problem' });
  });
});

describe('numalign-node explain', () => {
  it('says once why a whole pod is refused, and by what rule or why it is placed one by one', async () => {
    const { args } = place();
    const folder = args[1]!;
    mkdirSync(folder);
    const write = (name: string, cpu: number, more: object = {}) => {
      const container = (each: string) => ({ name: each, resources: { limits: { cpu, memory: '1Mi' } } });
      const spec = { containers: ['a', 'b'].map(container) };
      const path = join(folder, name);
      const metadata = { name: 'web', namespace: 'shop' };
      writeFileSync(path, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata, spec, ...more }));
      return path;
    };
    const run = (path: string, ...more: string[]) =>
      numalignNode('explain', path, ...args.slice(0, 2), ...more);
    const { code, stdout } = await run(write('large.json', 4096), '--whole-pods').end;
    expect(code).toBe(1);
    expect(stdout).toMatch(/^pod shop\/web: placed as a whole\n {2}would be refused: /);
    expect(stdout.match(/would be refused/g)).toHaveLength(1);
    const burstable = { spec: { containers: [{ name: 'a' }] } };
    const one = await run(write('none.json', 1, burstable), '--whole-pods').end;
    expect(one).toMatchObject({ code: 0, stderr: '' });
    expect(one.stdout).toMatch(
      /^pod shop\/web: containers are placed one by one: the pod is not Guaranteed\na: /,
    );
    expect((await run(write('none.json', 1, burstable)).end).stdout).toMatch(/^a: no rule\n {2}shared\n$/);
  });
});

describe('The memory of numalign-node', () => {
  it('has no part of Node or package that its flags do not need', async () => {
    const { socket, args } = place();
    const runtime = await FakeRuntime.listen(socket);
    onTestFinished(() => runtime.close());
    // Its own end would tell too late: it says what it has loaded when it is signalled.
    const preload = join(args[1]!, '../tell.mjs');
    const text = `process.once('SIGUSR2', () => console.log(JSON.stringify([
      process.moduleLoadList, Object.keys(createRequire(import.meta.url).cache),
    ])));`;
    writeFileSync(preload, `import { createRequire } from 'node:module';\n${text}`);
    const env = { ...process.env, NODE_OPTIONS: `--import ${preload}` };
    const { child } = numalignNodeIn(env, ...args, '--no-kubelet', '--listen', '127.0.0.1:0');
    const plugin = await runtime.synchronizedPlugin();
    expect(plugin).toBeDefined();
    child.kill('SIGUSR2');
    // A pipe gives at most 64 KiB at a time.
    const [line] = await once(createInterface(child.stdout!), 'line');
    const [parts, files] = JSON.parse(line) as string[][];
    const names = parts!.map((each) => each.replace(/^NativeModule /, ''));
    for (const unneeded of ['http2', 'tls', 'https', 'internal/deps/undici/undici'])
      expect(names).not.toContain(unneeded);
    for (const unneeded of ['@grpc/grpc-js', 'yaml', '@opentelemetry/api'])
      expect(files!.filter((path) => path.includes(`/node_modules/${unneeded}/`))).toEqual([]);
    expect(files!.some((path) => path.includes('/node_modules/prom-client/'))).toBe(true);
  });
});
