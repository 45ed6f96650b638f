// needs: process
// Kernel settings for a quiet grant are restored however its owner ends. The settings are in a
// folder tree.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import type { Manager } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { membersOf } from '../support/state-text.js';
import { openQuietManager } from '../torture/quiet-manager.mjs';
import { QuietTree, TREE } from '../torture/quiet-tree.mjs';
import { encodeMembers } from '../torture/state-file.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CPUS = 16;
const MACHINE = `core:${CPUS} pu:1`;
const QUIET = { interrupts: true, workqueues: true, idle: true };

function makeTree() {
  const stateDir = makeStateDir();
  const tree = new QuietTree(join(stateDir, TREE), CPUS);
  tree.make();
  return { stateDir, tree };
}

async function open(stateDir: string): Promise<Manager> {
  const topology = await discover({ synthetic: MACHINE });
  // No round of reconciliation in between.
  const manager = await openQuietManager(ROOT, { topology, stateDir, cpuManagerReconcilePeriod: '1h' });
  onTestFinished(() => manager.close());
  return manager;
}

async function owner(stateDir: string, tree: QuietTree): Promise<Agent> {
  const agent = new Agent();
  await agent.tell('open', { stateDir, simulate: MACHINE, tree: true });
  await agent.tell('acquire', { cpu: 2, quiet: QUIET });
  expect(tree.changed().length).toBeGreaterThan(5);
  return agent;
}

describe('kernel settings for a killed process', () => {
  it('are restored at once by an open manager without quiet grants', async () => {
    const { stateDir, tree } = makeTree();
    const manager = await open(stateDir);
    const agent = await owner(stateDir, tree);
    agent.process.kill('SIGKILL');
    await expect.poll(() => tree.changed(), { interval: 5 }).toEqual([]);
    // This leaves the record after it.
    await expect.poll(() => manager.grants()).toEqual([]);
  });

  it('are restored by the next process that opens the folder', async () => {
    const { stateDir, tree } = makeTree();
    const agent = await owner(stateDir, tree);
    await agent.kill();
    expect(tree.changed()).not.toEqual([]);
    await open(stateDir);
    expect(tree.changed()).toEqual([]);
  });

  it('stay as far as a grant of another process needs them', async () => {
    const { stateDir, tree } = makeTree();
    const manager = await open(stateDir);
    const grant = await manager.acquire({ cpu: 1, quiet: QUIET });
    const alone = tree.read();
    const agent = await owner(stateDir, tree);
    expect(tree.read()).not.toEqual(alone);
    await agent.kill();
    await expect.poll(() => tree.read(), { interval: 5 }).toEqual(alone);
    await grant.release();
    expect(tree.changed()).toEqual([]);
  });
});

it('kernel settings of an earlier boot have no owner in this one', async () => {
  const { stateDir, tree } = makeTree();
  const agent = new Agent();
  await agent.tell('open', { stateDir, simulate: MACHINE, tree: true });
  await agent.tell('acquire', { cpu: 2, quiet: QUIET, owner: 'persistent' });
  await agent.kill();
  const members = { ...membersOf(stateDir), bootId: 'an-earlier-boot' };
  writeFileSync(join(stateDir, 'state.json'), encodeMembers(members));
  rmSync(join(stateDir, 'state.copy.json'));
  // The same values as numalign had left, by chance.
  const found = tree.read();
  const manager = await open(stateDir);
  expect(manager.warnings).toMatchObject([{ code: 'STATE_ARCHIVED' }]);
  expect(tree.read()).toEqual(found);
  expect(membersOf(stateDir).quiet ?? null).toBeNull();
});

it('a request that requires a refused setting leaves nothing changed', async () => {
  const { stateDir, tree } = makeTree();
  const manager = await open(stateDir);
  tree.addInterrupt(99, '0');
  const path = join(stateDir, TREE, '/proc/irq/99/smp_affinity_list');
  // No process can read it.
  rmSync(path);
  mkdirSync(path);
  const error = await errorOf(() =>
    manager.acquire({ cpu: 2, quiet: QUIET, require: { quiet: ['interrupts'] } }),
  );
  expect(error.code).toBe('ERR_QUIET');
  expect(error.message).toContain('IRQ 99 (eth0-99) cannot be read (EISDIR)');
  expect(manager.grants()).toEqual([]);
  expect(tree.changed()).toEqual([]);
});

describe.runIf(affinity().size > 1)('a process without quiet grants', () => {
  it('reads no kernel setting, whatever others commit, even in its rounds', async () => {
    const { stateDir, tree } = makeTree();
    const agent = new Agent();
    await agent.tell('open', { stateDir, tree: true });
    await agent.tell('acquire', { cpu: 1, quiet: QUIET });
    const before = tree.read();
    const reads: string[] = [];
    const options = { stateDir, cpuManagerReconcilePeriod: 0 };
    const manager = await openQuietManager(ROOT, options, (path) => reads.push(path));
    onTestFinished(() => manager.close());
    await manager.reconcile();
    expect(manager.grants()).toHaveLength(1);
    expect(reads).toEqual([]);
    // It would have handled it.
    expect(tree.read()).toEqual(before);
    await agent.kill();
    await expect.poll(() => tree.changed(), { interval: 5 }).toEqual([]);
    expect(reads).not.toEqual([]);
  });
});
