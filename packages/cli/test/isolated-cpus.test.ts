// needs: machine
// Isolated CPUs on the command line.
import { discover } from 'numalign/topology';
import { describe, expect, it } from 'vitest';
import { newFolder, numalign } from './numalign.js';
import { newFile, pod } from './pods.js';

const { cpus } = await discover();
const last = String([...cpus].at(-1));

describe('isolated CPUs on this machine', () => {
  it('are configured, shown, and granted to a command that asks for them', async () => {
    if (cpus.size < 2) return;
    const folder = ['--state-dir', newFolder()];
    const configured = await numalign(['configure', '--isolated', last, ...folder]);
    expect(configured.stdout).toMatch(
      new RegExp(`^isolated: +none \\(what the kernel isolates\\) +CPU ${last}$`, 'm'),
    );

    const run = (...flags: string[]) =>
      numalign([
        'run',
        '--supervise',
        '--cpus',
        '1',
        ...flags,
        ...folder,
        '--',
        'sh',
        '-c',
        'echo $NUMALIGN_CPUS',
      ]);
    const { code, stdout, stderr } = await run('--isolation', 'require');
    expect([code, stdout.trim()]).toEqual([0, last]);
    expect(stderr).toContain(`isolated CPU ${last} on NUMA node`);
    expect((await run('--isolated', last, '--isolation', 'prefer')).stdout.trim()).toBe(last);
    expect((await run('--isolated', 'none')).stderr).toContain(`isolatedCPUs is ${last}, not none`);

    const status = await numalign(['status', ...folder]);
    expect(status.stdout).toMatch(new RegExp(`^isolated: +CPU ${last}$`, 'm'));
    expect(status.stdout).toMatch(new RegExp(`^free isolated: +CPU ${last}$`, 'm'));
    const json = JSON.parse((await numalign(['status', '--output', 'json', ...folder])).stdout);
    expect(json).toMatchObject({
      freeIsolated: last,
      settings: { isolatedCPUs: last, isolatedByKernel: false },
    });
    const tree = await numalign(['topology', ...folder]);
    expect(tree.stdout).toContain(`CPU ${last} (not shared), free: CPU ${last}`);

    const undone = await numalign(['configure', '--isolated', 'kernel', ...folder]);
    expect(undone.stdout).toMatch(
      new RegExp(`^isolated: +CPU ${last} +none \\(what the kernel isolates\\)$`, 'm'),
    );
    expect((await numalign(['status', ...folder])).stdout).not.toContain('free isolated');
  });

  it.each([
    ['configure', '--isolated', '3-1'],
    ['run', '--cpus', '1', '--isolation', 'always', '--', 'true'],
    ['plan', '-f', 'x', '--isolated', 'kernel'],
  ])('%s %s %s is a wrong command line', async (...args) => {
    expect((await numalign(args)).code).toBe(2);
  });
});

describe('numalign plan with isolated CPUs', () => {
  it('says on a described machine which pods would get them', async () => {
    const machine = [
      '--synthetic',
      'core:4 pu:2',
      '--isolated',
      '4-5',
      '-f',
      newFile(pod('app', 2)),
      '--output',
      'json',
    ];
    const placed = async (...flags: string[]) => {
      const { code, stdout } = await numalign(['plan', ...machine, ...flags]);
      const [answer] = JSON.parse(stdout).pods;
      return [code, answer.containers[0]?.cpus ?? answer.explanation.resources[0].isolated];
    };
    expect(await placed()).toEqual([0, '0-1']);
    expect(await placed('--isolation', 'prefer')).toEqual([0, '4-5']);
    expect(await placed('--isolation', 'require', '--isolated', '5')).toEqual([1, '5']);
  });
});
