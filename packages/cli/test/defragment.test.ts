// needs: machine
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet, NodeSet } from 'numalign';
import { describe, expect, it } from 'vitest';
import { linesOf } from '../lib/commands/defragment.js';
import { newFolder, numalign } from './numalign.js';

describe('numalign defragment', () => {
  it('says so if nothing can be gained, with the room of each node', async () => {
    const { code, stdout } = await numalign(['defragment', '--state-dir', newFolder()]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^no move of a grant that consents would help\n(NUMA node \d+: .*\n)+$/);
  });

  it('prints JSON', async () => {
    const args = ['defragment', '--dry-run', '--output', 'json', '--state-dir', newFolder()];
    const { stdout } = await numalign(args);
    const { nodes, ...rest } = JSON.parse(stdout);
    expect(rest).toEqual({ dryRun: true, moves: [], unmoved: [], isBounded: false });
    expect(nodes[0]).toMatchObject({ node: 0, before: nodes[0].after });
  });

  it('makes no state folder in a dry run', async () => {
    const stateDir = join(newFolder(), 'state');
    const { code } = await numalign(['defragment', '--dry-run', '--state-dir', stateDir]);
    expect(code).toBe(0);
    expect(existsSync(stateDir)).toBe(false);
  });

  it('lists the grants that moved, would move, and did not move', () => {
    const move = {
      ...{ uid: 'u', name: 'web', before: CpuSet.of(0, 1), cpus: CpuSet.of(6, 7), nodes: NodeSet.of(1) },
    };
    const unmoved = [{ uid: 'v', name: 'db\n', code: 'ERR_NOT_MOVED', reason: 'refused' }];
    const done = {
      ...{ dryRun: false, moves: [move], unmoved, isBounded: false },
      nodes: [
        { node: 0, before: 2, after: 3 },
        { node: 1, before: 1, after: 1 },
      ],
    };
    expect(linesOf(done)).toEqual([
      'moved web: CPUs 0-1 to 6-7, NUMA 1',
      'not moved db?: refused',
      'NUMA node 0: one request can have 3 CPUs (2 before)',
      'NUMA node 1: one request can have 1 CPU',
    ]);
    expect(linesOf({ ...done, dryRun: true })[0]).toBe('would move web: CPUs 0-1 to 6-7, NUMA 1');
    expect(linesOf({ ...done, moves: [], nodes: [], isBounded: true })).toEqual([
      'not moved db?: refused',
      'not all moves were tried',
    ]);
  });
});

describe('numalign plan --cpu-policy dynamic', () => {
  it('says why no move would help', async () => {
    const machine = ['--synthetic', 'package:2 [numa(memory=4GiB)] core:2 pu:1'];
    const request = ['--cpus', '3', '--policy', 'single-numa-node', '--cpu-policy', 'dynamic'];
    const { code, stdout } = await numalign(['plan', ...machine, ...request]);
    expect(code).toBe(1);
    expect(stdout).toContain('no move would help: no NUMA nodes would do');
  });
});
