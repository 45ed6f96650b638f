// needs: nothing
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { canUnshare } from '../../../test/support/rights.js';
import { simulate } from '../../../test/support/simulated.js';
import { MAIN, newFolder, numalign } from './numalign.js';

const INTERLEAVED = {
  name: '2s-3c2t-inter',
  columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache'],
  cpus: [
    [0, 0, 0, 0, 0],
    [1, 1, 1, 1, 1],
    [2, 2, 0, 0, 0],
    [3, 3, 1, 1, 1],
    [4, 4, 0, 0, 0],
    [5, 5, 1, 1, 1],
    [6, 0, 0, 0, 0],
    [7, 1, 1, 1, 1],
    [8, 2, 0, 0, 0],
    [9, 3, 1, 1, 1],
    [10, 4, 0, 0, 0],
    [11, 5, 1, 1, 1],
  ],
  nodes: [
    { id: 0, cpuLess: false, distances: [10, 32] },
    { id: 1, cpuLess: false, distances: [32, 10] },
  ],
};

describe('numalign topology', () => {
  it('shows this machine with every online CPU, and makes no state folder', async () => {
    const folder = join(newFolder(), 'state');
    const { code, stdout, stderr } = await numalign(['topology', '--state-dir', folder]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^Machine: \d+ packages?, \d+ NUMA nodes?, .*\d+ CPUs? \(/);
    expect(stdout).toContain('NUMA node 0  CPUs ');
    expect(stdout).toContain(`no state in ${folder}: nothing is granted`);
    expect(existsSync(folder)).toBe(false);
  });

  it.runIf(canUnshare)("shows the tree even if the machine's state cannot be read, and why", async () => {
    const { stateDir } = await simulate('core:2 pu:1');
    const put = `mount -t tmpfs tmpfs /run; cp -r ${stateDir} /run/numalign; exec "$@"`;
    const program = ['unshare', '--mount', 'sh', '-ec', put, 'sh', process.execPath, MAIN] as const;
    const { code, stdout } = await numalign(['topology'], { program });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Machine: /);
    expect(stdout).toContain('[ERR_SIMULATED_MACHINE]');
  });

  it('does not change a folder without a state', async () => {
    const folder = newFolder();
    expect((await numalign(['topology', '--state-dir', folder])).stdout).toContain('nothing is granted');
    expect(readdirSync(folder)).toEqual([]);
  });

  it('draws packages, NUMA nodes, L3 groups and cores of a synthetic machine with SMT', async () => {
    const { stdout } = await numalign(['topology', '--synthetic', 'package:2 numa:2 l3:2 core:2 pu:2']);
    expect(stdout).toContain(
      'Simulated machine (synthetic): 2 packages, 4 NUMA nodes, 8 L3 groups, 16 cores, 32 CPUs (SMT: 2 CPUs a core)',
    );
    expect(stdout.split('\n').slice(1, 5)).toEqual([
      '├─ Package 0  16 CPUs',
      '│  ├─ NUMA node 0  CPUs 0-7',
      '│  │  ├─ L3 0  2 cores  0,1 2,3',
      '│  │  └─ L3 1  2 cores  4,5 6,7',
    ]);
    expect(stdout).not.toContain('state');
  });

  it('reads a JSON machine whose CPU ids alternate between packages, and shows its distances', async () => {
    const file = join(newFolder(), 'machine.json');
    writeFileSync(file, JSON.stringify(INTERLEAVED));
    const { code, stdout } = await numalign(['topology', '--json', file]);
    expect(code).toBe(0);
    expect(stdout).toContain('NUMA node 1  CPUs 1,3,5,7,9,11');
    expect(stdout).toContain('3 cores  1,7  3,9  5,11');
    expect(stdout).toContain('NUMA distances\n      0  1\n   0 10 32\n   1 32 10\n');
  });

  it('prints JSON that --json reads back to the same machine', async () => {
    const file = join(newFolder(), 'machine.json');
    const first = await numalign([
      'topology',
      '--synthetic',
      'package:2 numa:2 l3:2 core:2 pu:2',
      '--output',
      'json',
    ]);
    writeFileSync(file, first.stdout);
    const second = await numalign(['topology', '--json', file, '--output', 'json']);
    expect(JSON.parse(second.stdout)).toEqual(JSON.parse(first.stdout));
    expect(first.stdout).toContain('[0, 0, 0, 0, 0, 0]');
  });

  it('adds the content of the state to the JSON of this machine', async () => {
    const folder = newFolder();
    await numalign(['configure', '--reserved', '0', '--state-dir', folder]);
    const before = readFileSync(join(folder, 'state.json'), 'utf8');
    const machine = JSON.parse(
      (await numalign(['topology', '--output', 'json', '--state-dir', folder])).stdout,
    );
    expect(machine).toMatchObject({ reserved: '0', grants: [], stateDir: folder, refusal: null });
    expect(machine.sharedPool.startsWith('0')).toBe(true);
    expect(readFileSync(join(folder, 'state.json'), 'utf8')).toBe(before);
  });

  it.each([
    [
      'a file that is not there',
      ['--json', '/nonexistent/machine.json'],
      'cannot read the machine file /nonexistent/machine.json: ENOENT',
    ],
    ['a synthetic description that hwloc refuses', ['--synthetic', 'teapots:3'], 'teapots:3'],
  ])('refuses %s in one line, without a stack', async (_, args, message) => {
    const { code, stdout, stderr } = await numalign(['topology', ...args]);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/^numalign: .* \[ERR_INVALID_TOPOLOGY\]\n$/);
    expect(stderr).toContain(message);
  });

  it('refuses malformed JSON machines, naming what is wrong', async () => {
    const file = join(newFolder(), 'machine.json');
    for (const [text, message] of [
      ['{"columns": [', 'is not JSON'],
      ['[]', 'must be an object'],
      [JSON.stringify({ ...INTERLEAVED, columns: ['cpu'] }), 'columns lack "core"'],
      [JSON.stringify({ ...INTERLEAVED, cpus: [[0, 0, 0, 'x', 0]] }), 'cpus[0][3]'],
    ] as const) {
      writeFileSync(file, text);
      const { code, stderr } = await numalign(['topology', '--json', file]);
      expect(code).toBe(1);
      expect(stderr).toContain(message);
      expect(stderr).toContain('[ERR_INVALID_TOPOLOGY]');
    }
  });

  it('refuses two machines at once, and a state for a described one', async () => {
    for (const args of [
      ['--synthetic', 'core:2 pu:1', '--json', 'x'],
      ['--synthetic', 'core:2 pu:1', '--state-dir', '/tmp'],
    ]) {
      const { code, stderr } = await numalign(['topology', ...args]);
      expect(code).toBe(2);
      expect(stderr).toContain('cannot be used with');
    }
  });
});
