// PM2 of npm with the ecosystem file of the examples: a daemon of the test's own, in a folder of its
// own.
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { makeProject } from './project.js';
import { npm, ROOT, run } from './tarball.js';

const poll: typeof expect.poll = (ask) => expect.poll(ask, { timeout: 60_000, interval: 100 });

const PRELOAD = join(ROOT, 'dist/preload.js');

const installed = mkdtempSync(join(tmpdir(), 'numalign-pm2-'));
beforeAll(() => {
  writeFileSync(join(installed, 'package.json'), '{ "private": true }');
  npm(['install', '--no-audit', '--no-fund', 'pm2@7'], { cwd: installed });
  symlinkSync(ROOT, join(installed, 'node_modules/numalign'));
});
afterAll(() => rmSync(installed, { recursive: true }));

interface App {
  readonly name: string;
  readonly pid: number;
  readonly status: string;
  readonly instance: number;
}

/** PM2 in a project with the files of the example. There is one CPU to be granted: 1. */
function startPm2(variables: Record<string, string> = {}) {
  const cwd = makeProject();
  symlinkSync(join(installed, 'node_modules'), join(cwd, 'node_modules'));
  cpSync(join(ROOT, 'examples/pm2'), cwd, { recursive: true });
  const home = join(cwd, 'pm2');
  const stateDir = join(cwd, 'state');
  mkdirSync(home);
  const env = {
    PM2_HOME: home,
    PM2_DISCRETE_MODE: 'true',
    PORT: '0',
    INSTANCES: '1',
    NUMALIGN_MANAGER: JSON.stringify({ stateDir, managedCPUs: '0-1', reservedSystemCPUs: '0' }),
    ...variables,
  };
  const pm2 = (...args: string[]) =>
    run(process.execPath, [join(cwd, 'node_modules/pm2/bin/pm2'), ...args], { cwd, env }).stdout;
  const numalign = (...args: string[]) => {
    const main = join(ROOT, 'packages/cli/dist/main.cjs');
    return run(process.execPath, [main, ...args, '--state-dir', stateDir, '--output', 'json'], { cwd })
      .stdout;
  };
  onTestFinished(() => void pm2('kill'));
  const apps = (): App[] =>
    (JSON.parse(pm2('jlist')) as { name: string; pid: number; pm2_env: Record<string, unknown> }[]).map(
      ({ name, pid, pm2_env }) => ({
        name,
        pid,
        status: String(pm2_env.status),
        instance: Number(pm2_env.NODE_APP_INSTANCE),
      }),
    );
  const grants = (): string[] =>
    (JSON.parse(numalign('status')).grants as { name: string; cpus: string; owner: { pid: number } }[]).map(
      ({ name, cpus, owner }) => `${name}: CPU ${cpus}, process ${owner.pid}`,
    );
  return {
    ...{ cwd, pm2, numalign, apps, grants },
    daemon: () => Number(readFileSync(join(home, 'pm2.pid'), 'utf8')),
    log: () => [join(home, 'pm2.log'), ...logsIn(join(home, 'logs'))].map(textOf).join(''),
    /** The process of the instance, once it is the owner of the one CPU and not the one before. */
    owner: async (name: string, before?: number) => {
      let pid = 0;
      await poll(() => {
        const [, owner] = new RegExp(`^${name}: CPU 1, process (\\d+)$`).exec(grants().join()) ?? [];
        pid = Number(owner ?? 0);
        return pid !== 0 && pid !== before && apps().some((app) => app.pid === pid);
      }).toBe(true);
      return pid;
    },
  };
}

const textOf = (path: string) => readFileSync(path, 'utf8');
const logsIn = (folder: string) => readdirSync(folder).map((name) => join(folder, name));

/** The CPUs of each thread of a process. */
const masks = (pid: number) => [
  ...new Set(
    readdirSync(`/proc/${pid}/task`).map(
      (tid) => /^Cpus_allowed_list:\t(.*)$/m.exec(textOf(`/proc/${pid}/task/${tid}/status`))![1],
    ),
  ),
];

describe.each(['fork', 'cluster'])('an app of PM2 in its %s mode', (EXEC_MODE) => {
  it('runs on a CPU of its own from its first line, and on it again after restart, reload and SIGKILL', async () => {
    const { pm2, owner, log } = startPm2({ EXEC_MODE });
    pm2('start', 'ecosystem.config.cjs');
    let pid = await owner('api-0');
    const again = [
      () => pm2('restart', 'api'),
      () => pm2('reload', 'api'),
      () => void process.kill(pid, 'SIGKILL'),
    ];
    for (const end of again) {
      expect(masks(pid)).toEqual(['1']);
      end();
      pid = await owner('api-0', pid);
    }
    expect(masks(pid)).toEqual(['1']);
    await poll(() => log().split('instance 0 on CPU 1\n').length - 1).toBe(4);
  });

  it('waits for room when it is scaled, under a name of each instance', async () => {
    const { pm2, apps, grants, owner, log } = startPm2({ EXEC_MODE });
    pm2('start', 'ecosystem.config.cjs');
    const first = await owner('api-0');
    pm2('scale', 'api', '2');
    expect(apps().map(({ status, instance }) => [status, instance])).toEqual([
      ['online', 0],
      ['online', 1],
    ]);
    expect(grants()).toEqual([`api-0: CPU 1, process ${first}`]);
    pm2('stop', '0');
    const second = await owner('api-1', first);
    expect(masks(second)).toEqual(['1']);
    await poll(log).toContain('instance 1 on CPU 1\n');
  });
});

describe('an app of PM2 that does not wait', () => {
  /** Two instances, where there is a CPU for one. */
  async function scaled(more: object) {
    const pm2 = startPm2();
    const acquire = { cpu: 1, name: `api-\${NODE_APP_INSTANCE}`, ...more };
    const app = {
      name: 'api',
      script: 'server.mjs',
      node_args: ['--import', PRELOAD],
      env: { NUMALIGN_ACQUIRE: JSON.stringify(acquire) },
      max_restarts: 2,
      // What ends before is a failure to PM2.
      min_uptime: 60_000,
    };
    writeFileSync(join(pm2.cwd, 'impatient.json'), JSON.stringify({ apps: [app] }));
    pm2.pm2('start', 'impatient.json');
    const first = await pm2.owner('api-0');
    pm2.pm2('scale', 'api', '2');
    return { ...pm2, first };
  }

  it('is given up by PM2 if there is no CPU for it, and the log says why', async () => {
    const { apps, grants, log, first } = await scaled({});
    await poll(() => apps().map(({ status }) => status)).toEqual(['online', 'errored']);
    expect(grants()).toEqual([`api-0: CPU 1, process ${first}`]);
    expect(log()).toMatch(
      /numalign\/preload: .*held by "api-0" of process \d+: 1.* \[ERR_INSUFFICIENT_CPUS\]/,
    );
  });

  it('runs in the shared pool if its CPU is optional, and the log says so', async () => {
    const { apps, grants, log, first } = await scaled({ optional: true });
    await poll(log).toMatch(/^instance 1 on CPU undefined$/m);
    expect(log()).toMatch(/numalign\/preload: no exclusive CPUs, .* \[ERR_INSUFFICIENT_CPUS\]/);
    expect(grants()).toEqual([`api-0: CPU 1, process ${first}`]);
    expect(masks(apps()[1]!.pid)).toEqual(['0']);
  });
});

describe('PM2’s daemon', () => {
  it('and apps without the preload keep off the CPUs of the others, once it is shared', async () => {
    const { cwd, pm2, numalign, daemon, owner, apps } = startPm2();
    pm2('start', 'ecosystem.config.cjs');
    const pid = await owner('api-0');
    numalign('share', String(daemon()));
    writeFileSync(join(cwd, 'plain.cjs'), 'setInterval(() => {}, 1000);\n');
    pm2('start', 'plain.cjs', '--instances', '1');
    const plain = apps().find(({ name }) => name === 'plain')!;
    for (const each of [daemon(), plain.pid]) {
      expect(masks(each)).toEqual(['0']);
      expect(textOf(`/proc/${each}/maps`)).not.toContain('numalign.node');
    }
    expect(textOf(`/proc/${pid}/maps`)).toContain('numalign.node');
    pm2('restart', 'api');
    expect(masks(await owner('api-0', pid))).toEqual(['1']);
  });
});
