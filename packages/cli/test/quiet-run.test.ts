// needs: machine
// Quiet grants of the command line, on this machine.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { affinity, type QuietOutcome } from 'numalign/diagnostics';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseCpuMask } from '../../../lib/quiet/kernel/cpu-mask.js';
import { canBeStranger, forStrangers } from '../../../test/support/strangers.js';
import { newFolder, numalign, start, until } from './numalign.js';

const WORKQUEUES = '/sys/devices/virtual/workqueue/cpumask';
const RUN = ['run', '--cpus', '1', '--reserved', '0', '--state-dir'];
const canSet = process.geteuid?.() === 0 && existsSync(WORKQUEUES) && affinity().size > 1;
const hasCache = existsSync('/sys/fs/resctrl/schemata');

const workqueues = () => readFileSync(WORKQUEUES, 'utf8');
const disturbs = (cpu: number) => parseCpuMask(workqueues())!.has(cpu);

/**
 * Gives the machine's CPUs such work, whatever the setting was before; restores it after the test.
 */
function allWork(): void {
  const before = workqueues();
  onTestFinished(() => {
    if (workqueues() !== before) writeFileSync(WORKQUEUES, before);
  });
  writeFileSync(WORKQUEUES, '3');
}

/** A folder in which only CPU 1 can be granted. */
async function folderOfTwo(): Promise<string> {
  const folder = newFolder();
  await numalign(['configure', '--managed', '0-1', '--reserved', '0', '--state-dir', folder]);
  return folder;
}

async function quietIn(folder: string): Promise<(QuietOutcome | null)[]> {
  const { stdout } = await numalign(['status', '--output', 'json', '--state-dir', folder]);
  return (JSON.parse(stdout) as { grants: { quiet: QuietOutcome | null }[] }).grants.map(
    ({ quiet }) => quiet,
  );
}

describe('numalign run --quiet', () => {
  it.runIf(canSet)('keeps kernel work off the CPU of its command, and restores it afterwards', async () => {
    allWork();
    const folder = await folderOfTwo();
    const run = start([...RUN, folder, '--quiet', 'workqueues', '--', 'sh', '-c', 'echo started; read line']);
    await until(() => run.output.stdout.includes('started'), 'the command');
    await until(() => run.output.stderr.includes('grant'), 'the line of numalign');
    expect([disturbs(0), disturbs(1)]).toEqual([true, false]);
    expect(run.output.stderr).toMatch(/^numalign: CPU 1 on .*, quiet: workqueues, grant /);
    const [outcome] = await quietIn(folder);
    expect(outcome!.parts).toEqual({ workqueues: { reached: 'yes', reasons: [] } });
    const { stdout } = await numalign(['status', '--state-dir', folder]);
    expect(stdout).toContain('alive, quiet');
    expect(stdout).not.toContain('not wholly quiet');
    const journal = await numalign(['state', 'show', '--state-dir', folder]);
    expect(journal.stdout).toContain("new record of the kernel's settings that quiet grants");
    expect(journal.stdout).toMatch(/: CPUs 1, quiet$/m);
    run.process.stdin!.end('\n');
    expect((await run.ended).code).toBe(0);
    expect(disturbs(1)).toBe(true);
  });

  it.runIf(canSet)('is undone by the next opener if the command line is killed', async () => {
    allWork();
    const folder = await folderOfTwo();
    const run = start([...RUN, folder, '--quiet', 'workqueues', '--', 'sh', '-c', 'echo $$; read line']);
    const pid = await until(() => /^(\d+)\n/.exec(run.output.stdout)?.[1], 'the pid of the command');
    await until(() => run.output.stderr.includes('grant'), 'the line of numalign');
    run.process.kill('SIGKILL');
    await run.ended;
    // The command keeps its grant while it runs.
    await until(() => !existsSync(`/proc/${pid}`), 'the end of the command');
    const next = await numalign([...RUN, folder, '--', 'true']);
    expect([next.code, disturbs(1)]).toEqual([0, true]);
  });

  it.runIf(!hasCache)('prints a part that it has not reached in a line, and in status', async () => {
    const folder = await folderOfTwo();
    const script = 'echo started; read line';
    const run = start([...RUN, folder, '--quiet=cache=25%', '--', 'sh', '-c', script]);
    await until(() => run.output.stdout.includes('started'), 'the command');
    const line = await until(
      () => /^numalign: (quiet cache: no: .+)$/m.exec(run.output.stderr)?.[1],
      'a line',
    );
    const { stdout } = await numalign(['status', '--state-dir', folder]);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain('not wholly quiet:');
    expect(stdout).toContain(line.slice(0, 'quiet cache: no: resctrl'.length));
    run.process.stdin!.end('\n');
    await run.ended;
  });

  it.runIf(!hasCache)('is refused if a required part is out of reach, and grants nothing', async () => {
    const folder = await folderOfTwo();
    const flags = ['--quiet', 'cache=4', '--require-quiet', 'cache', '--output', 'json'];
    const { code, stderr } = await numalign([...RUN, folder, ...flags, '--', 'true']);
    const { error } = JSON.parse(stderr) as { error: { code: string; details: { value: string[] } } };
    expect([code, error.code, error.details.value]).toEqual([1, 'ERR_QUIET', ['cache']]);
    expect(await quietIn(folder)).toEqual([]);
  });

  it.runIf(canBeStranger && canSet)('tells an ordinary user that it needs root', async () => {
    allWork();
    const before = workqueues();
    const user = ['setpriv', '--reuid', '4242', '--regid', '4242', '--clear-groups'] as const;
    const program = [...user, process.execPath, forStrangers('packages/cli/dist/main.cjs')] as const;
    const state = join(tmpdir(), `numalign-stranger-${process.pid}`);
    onTestFinished(() => rmSync(state, { recursive: true, force: true }));
    const flags = [state, '--quiet', 'workqueues', '--', 'true'];
    const { code, stderr } = await numalign([...RUN, ...flags], { program });
    expect(stderr).toMatch(/^numalign: quiet workqueues: no: .*EACCES/m);
    expect([code, workqueues()]).toEqual([0, before]);
  });
});

describe('numalign admit --quiet', () => {
  it.runIf(canSet)('keeps kernel work off the CPUs of a pod until it is released', async () => {
    allWork();
    const folder = await folderOfTwo();
    const pod = join(folder, 'pod.yaml');
    const limits = 'resources: {limits: {cpu: 1, memory: 1Mi}}';
    writeFileSync(pod, `kind: Pod\nmetadata: {name: job}\nspec: {containers: [{name: main, ${limits}}]}\n`);
    const flags = ['--quiet', 'workqueues', '--output', 'json', '--state-dir', folder];
    const { stdout } = await numalign(['admit', '-f', pod, ...flags]);
    const { pods } = JSON.parse(stdout) as { pods: { quiet: QuietOutcome }[] };
    expect(pods[0]!.quiet.parts).toEqual({ workqueues: { reached: 'yes', reasons: [] } });
    expect(disturbs(1)).toBe(false);
    await numalign(['release', 'job', '--state-dir', folder]);
    expect(disturbs(1)).toBe(true);
  });
});
