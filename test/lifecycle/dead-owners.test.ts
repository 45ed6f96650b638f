// needs: process
// Grants of an owner that has ended: any process with an open manager takes them back by itself.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity } from '../../lib/entries/diagnostics.js';
import { type Manager, openManager, pin } from '../../lib/index.js';
import { Agent } from '../support/agent.js';
import { canUnshare } from '../support/rights.js';
import { makeStateDir } from '../support/state-dir.js';

const ALL = affinity();
// No round of reconciliation in between, and no listeners.
const QUIET = { cpuManagerReconcilePeriod: '1h' };
const NAMESPACE = ['unshare', '-pmf', '--kill-child=SIGKILL', '--mount-proc'];

beforeEach(() => void pin(ALL));

async function quietManager(): Promise<{ stateDir: string; manager: Manager }> {
  const stateDir = makeStateDir();
  const manager = await openManager({ stateDir, ...QUIET });
  onTestFinished(() => manager.close());
  return { stateDir, manager };
}

async function owner(stateDir: string, prefix: string[] = []): Promise<Agent> {
  const agent = new Agent(prefix);
  await agent.tell('open', { stateDir });
  await agent.tell('acquire', { cpu: 1 });
  return agent;
}

const expectGivenBack = (manager: Manager) =>
  expect.poll(() => [manager.grants().length, String(affinity())]).toEqual([0, String(ALL)]);

describe.runIf(ALL.size > 1)('an idle open manager', () => {
  const deaths: [string, string[]][] = [
    ['that is killed', []],
    ['that is killed in a pid namespace of its own', NAMESPACE],
  ];

  it.each(deaths.slice(0, canUnshare ? 2 : 1))('takes back the grants of a process %s', async (_, prefix) => {
    const { stateDir, manager } = await quietManager();
    const agent = await owner(stateDir, prefix);
    expect(affinity().size).toBe(ALL.size - 1);
    await agent.kill();
    await expectGivenBack(manager);
  });

  it('takes back the grants of a process that ended by itself', async () => {
    const { stateDir, manager } = await quietManager();
    const agent = await owner(stateDir);
    agent.process.stdin!.end();
    await expectGivenBack(manager);
  });

  it('takes back the grants of a child that ended after its parent', async () => {
    const { stateDir, manager } = await quietManager();
    const agent = await owner(stateDir);
    const child = await agent.tell('spawn', ['sleep', '60']);
    await agent.kill();
    expect(manager.grants()).toMatchObject([{ alive: true }]);
    process.kill(child, 'SIGKILL');
    await expectGivenBack(manager);
  });

  it('leaves no file of the dead owner behind', async () => {
    const { stateDir, manager } = await quietManager();
    const agent = await owner(stateDir);
    await agent.kill();
    await expectGivenBack(manager);
    await expect.poll(() => readdirSync(join(stateDir, 'owners'))).toEqual([]);
  });
});
