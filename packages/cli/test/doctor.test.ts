// needs: machine
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { affinity } from 'numalign/diagnostics';
import { discover } from 'numalign/topology';
import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import type { Finding } from '../../../lib/doctor/finding.js';
import { readMachineFacts } from '../../../lib/doctor/read-facts.js';
import { cpuTimeOf } from '../../../test/support/cpu-time.js';
import { canUnshare } from '../../../test/support/rights.js';
import { canBeStranger, forStrangers } from '../../../test/support/strangers.js';
import { outputUnder, writeSysTree } from '../../../test/support/sys-tree.js';
import { doctorText } from '../lib/pages/doctor-text.js';
import { MAIN, newFolder, numalign, start } from './numalign.js';

const SECCOMP = fileURLToPath(new URL('../../../test/support/seccomp.py', import.meta.url));
const isRoot = process.getuid?.() === 0;
const NODE = [process.execPath, MAIN] as const;

const CHECKS = [
  ...['state-folder', 'capabilities', 'allowed-cpus', 'seccomp', 'memory-policy'],
  ...['cgroups', 'delegation', 'enforcement', 'cpu-quota', 'cpusets'],
  ...['smt', 'core-kinds', 'isolated-cpus', 'governors', 'idle-states'],
  ...['interrupts', 'workqueues', 'packet-steering', 'kernel-work'],
  ...['numa-balancing', 'hugepages', 'kubelet', 'movers', 'agent'],
];

async function diagnose(args: readonly string[], program: readonly [string, ...string[]] = NODE) {
  const { code, stdout, stderr } = await numalign(['doctor', '--output', 'json', ...args], { program });
  expect(stderr).toBe('');
  const { healthy, findings } = JSON.parse(stdout) as { healthy: boolean; findings: Finding[] };
  const of = (check: string) => findings.find((finding) => finding.check === check)!;
  return { code, healthy, findings, of };
}

describe('numalign doctor', () => {
  it('checks this machine in every way, and exits with 1 if there is a problem', async () => {
    const { code, healthy, findings } = await diagnose(['--state-dir', newFolder()]);
    expect(findings.map(({ check }) => check)).toEqual(CHECKS);
    expect(findings.filter(({ found }) => found === '')).toEqual([]);
    expect(healthy).toBe(findings.every(({ status }) => status !== 'problem'));
    expect(code).toBe(healthy ? 0 : 1);
  });

  it('makes no folder if there is no state', async () => {
    const folder = newFolder();
    const stateDir = join(folder, 'state');
    const { of } = await diagnose(['--state-dir', stateDir]);
    expect(of('state-folder')).toMatchObject({ status: 'ok', found: expect.stringContaining('can be made') });
    expect(existsSync(stateDir)).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  });

  it('checks the recorded settings, and changes none of them', async () => {
    const folder = newFolder();
    await numalign(['configure', '--managed', '0-1', '--reserved', '0', '--state-dir', folder]);
    const before = statSync(join(folder, 'state.json'), { bigint: true }).mtimeNs;
    const { of } = await diagnose(['--state-dir', folder]);
    // What exists of it is on the CPU that is not reserved.
    expect(`${of('interrupts').found}${of('workqueues').found}`).toMatch(/CPU 1\b/);
    const quiet = 'numalign run --quiet interrupts';
    expect(of('interrupts').advice ?? quiet).toContain(quiet);
    // A private folder has no cgroups by default.
    expect(of('cgroups').status).toBe('warning');
    expect(statSync(join(folder, 'state.json'), { bigint: true }).mtimeNs).toBe(before);
  });

  it.each([
    ['no folder', 'file', 'it is a link or not a folder'],
    ['below a file', 'file/state', 'file, which is not a folder'],
    ['open to all users', 'open', 'every user may write to it'],
    ['nowhere', 'missing/state', 'the folder above it does not exist'],
  ])('finds a state folder that is %s, and says what would help', async (_, name, found) => {
    const folder = newFolder();
    writeFileSync(join(folder, 'file'), '');
    mkdirSync(join(folder, 'open'));
    chmodSync(join(folder, 'open'), 0o777);
    const { code, healthy, of } = await diagnose(['--state-dir', join(folder, name)]);
    expect([code, healthy]).toEqual([1, false]);
    expect(of('state-folder')).toMatchObject({
      status: 'problem',
      found: expect.stringContaining(found),
      advice: expect.stringContaining('--state-dir'),
    });
  });

  it.runIf(canBeStranger)('works for an ordinary user, and says what that user cannot do', async () => {
    const user = ['setpriv', '--reuid', '4242', '--regid', '4242', '--clear-groups'] as const;
    const { code, findings, of } = await diagnose(
      [],
      [...user, process.execPath, forStrangers('packages/cli/dist/main.cjs')],
    );
    expect(findings.map(({ check }) => check)).toEqual(CHECKS);
    expect(code).toBe(1);
    expect(of('state-folder')).toMatchObject({
      status: 'problem',
      advice: expect.stringContaining('install -d'),
    });
    expect(of('capabilities')).toMatchObject({
      status: 'warning',
      found: expect.stringContaining('user 4242'),
    });
    expect(of('enforcement')).toMatchObject({
      status: 'warning',
      found: expect.stringMatching(/^members: .*this user/),
    });
  });

  it.runIf(canUnshare)(
    'works in its own namespaces, and reports that some processes are invisible',
    async () => {
      const container = ['unshare', '--pid', '--fork', '--mount-proc', '--cgroup'] as const;
      const { findings, of } = await diagnose(['--state-dir', newFolder()], [...container, ...NODE]);
      expect(findings.map(({ check }) => check)).toEqual(CHECKS);
      expect(of('movers')).toMatchObject({ status: 'unknown' });
    },
  );

  it.runIf(canUnshare)('distinguishes what it cannot see from what does not exist', async () => {
    const folder = newFolder();
    const [empty, none] = [join(folder, 'empty'), join(folder, 'none')];
    mkdirSync(empty);
    writeFileSync(none, '');
    const hide = [
      `mount --bind ${empty} /sys/fs/cgroup`,
      `mount --bind ${empty} /proc/irq`,
      `mount --bind ${none} /proc/interrupts`,
      `mount --bind ${none} /sys/devices/virtual/workqueue/cpumask`,
      'exec "$@"',
    ];
    const blind = ['unshare', '--mount', 'sh', '-ec', hide.join('\n'), 'sh'] as const;
    const { findings, of } = await diagnose(['--state-dir', join(folder, 'state')], [...blind, ...NODE]);
    expect(findings.map(({ check }) => check)).toEqual(CHECKS);
    expect(of('cgroups').status).toBe('warning');
    for (const check of ['delegation', 'cpu-quota', 'cpusets', 'interrupts', 'workqueues']) {
      expect(of(check), check).toMatchObject({ status: 'unknown' });
    }
  });

  it('finds a seccomp filter, and the calls that it denies', async () => {
    const { of } = await diagnose(
      ['--state-dir', newFolder()],
      ['python3', SECCOMP, 'EPERM=get_mempolicy', '--', ...NODE],
    );
    expect(of('seccomp').found).toContain('filter');
    expect(of('memory-policy').found).toContain('EPERM');
  });

  it.runIf(canUnshare)('finds kinds of cores, and that performance cores are reserved', async () => {
    const [sys, stateDir] = [newFolder(), join(newFolder(), 'state')];
    const cpus = [0, 0, 2, 2, 4, 5, 6, 7].map((core, cpu) => ({ core, maxMHz: cpu < 4 ? 5000 : 3900 }));
    writeSysTree(sys, { cpus, types: { cpu_core: '0-3', cpu_atom: '4-7' } });
    const under = (...args: string[]) => outputUnder(sys, [...NODE, ...args, '--state-dir', stateDir]);
    const found = () => {
      const { findings } = JSON.parse(under('doctor', '--output', 'json')) as { findings: Finding[] };
      const of = (check: string) => findings.find((finding) => finding.check === check)!;
      return { kinds: of('core-kinds'), smt: of('smt') };
    };
    const all = 'performance cores 0-3 (4 CPUs, 4 free), efficiency cores 4-7 (4 CPUs, 4 free); requests';
    expect(found()).toMatchObject({
      kinds: { status: 'ok', found: expect.stringContaining(all), advice: null },
      smt: { status: 'warning', found: expect.stringContaining('1 or 2 CPUs per core') },
    });
    under('configure', '--reserved', '0-1');
    const { kinds } = found();
    expect(kinds.found).toContain('performance cores 0-3 (4 CPUs, 2 free)');
    expect(kinds.found).toContain('CPUs 0-1 of performance cores are reserved');
    const [, command] = /`numalign (.*)`/.exec(kinds.advice!)!;
    under(...command!.split(' ').slice(0, 3));
    expect(found().kinds).toMatchObject({
      status: 'ok',
      found: expect.stringContaining('2 free); requests'),
    });
  });

  it('finds that it may not use all CPUs', async () => {
    const first = String(affinity().first);
    const { of } = await diagnose(['--state-dir', newFolder()], ['taskset', '-c', first, ...NODE]);
    expect(of('allowed-cpus')).toMatchObject({ status: affinity().size > 1 ? 'warning' : 'ok' });
  });

  it.runIf(isRoot)('finds the program that moves interrupts', async () => {
    // It finds any program by the name of its main thread.
    const script = "process.title = 'irqbalance'; console.log('named'); setInterval(() => {}, 1000)";
    const { process: child, output } = start([], { program: [process.execPath, '-e', script] });
    while (!output.stdout.includes('named')) await new Promise((resolve) => setTimeout(resolve, 20));
    const { of } = await diagnose(['--state-dir', newFolder()]);
    expect(of('movers').found).toContain(`irqbalance (process ${child.pid})`);
  });

  it('refuses a cgroup root that cannot be one', async () => {
    const { code, stderr } = await numalign(['doctor', '--cgroup-root', 'relative']);
    expect(code).toBe(2);
    expect(stderr).toContain('--cgroup-root');
  });
});

describe('the facts of this machine', () => {
  it('are read in less than a second', async () => {
    const topology = await discover();
    const stateDir = newFolder();
    const time = cpuTimeOf(() =>
      readMachineFacts({
        topology,
        stateDir,
        settings: undefined,
        refusal: undefined,
        kubelet: null,
        free: null,
        pool: topology.cpus,
        grants: [],
        cgroupRoot: undefined,
      }),
    );
    expect(time).toBeLessThan(1_000);
  });
});

describe('the page of the doctor', () => {
  const findings: Finding[] = [
    { group: 'CPUs', check: 'smt', status: 'ok', found: 'off', advice: null },
    {
      group: 'CPUs',
      check: 'governors',
      status: 'warning',
      found: 'powersave on CPUs 0-3',
      advice: 'do this and `type this command`',
    },
    { group: 'memory', check: 'hugepages', status: 'problem', found: 'forged\n\u001b[2J', advice: 'none' },
  ];

  it('is grouped, aligned and filled to the width', () => {
    expect(doctorText(findings, { width: 52 })).toBe(
      [
        'CPUs',
        'ok       smt        off',
        'warning  governors  powersave on CPUs 0-3',
        '         -> do this and `type this command`',
        '',
        'memory',
        'problem  hugepages  forged??[2J',
        '         -> none',
        '',
        '1 problem, 1 warning, 0 unknown, 1 ok',
        '',
      ].join('\n'),
    );
    const narrow = doctorText(findings, { width: 40 }).split('\n');
    // A command is not broken into lines.
    expect(narrow).toContain('         `type this command`');
    expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(50);
  });

  it('shows results by colour', () => {
    const colors = pc.createColors(true);
    const text = doctorText(findings, { width: 80, colors });
    expect(text).toContain(colors.green('ok     '));
    expect(text).toContain(colors.yellow('warning'));
    expect(text).toContain(colors.red('problem'));
  });

  it('is plain in a pipe, and coloured on demand', async () => {
    const args = ['doctor', '--state-dir', newFolder()];
    expect((await numalign(args)).stdout).not.toContain('\u001b[');
    expect((await numalign(args, { env: { FORCE_COLOR: '1' } })).stdout).toContain('\u001b[');
    expect((await numalign(args, { env: { FORCE_COLOR: '1', NO_COLOR: '1' } })).stdout).not.toContain(
      '\u001b[',
    );
  });
});
