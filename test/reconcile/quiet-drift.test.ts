// needs: machine
// Other programs change settings of quiet grants; interrupts come and go. The kernel's settings are
// in a folder tree.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity, type Drift } from '../../lib/entries/diagnostics.js';
import { CpuSet } from '../../lib/index.js';
import { Ledger } from '../../lib/state/ledger.js';
import { makeStateDir } from '../support/state-dir.js';
import { openQuietManager } from '../torture/quiet-manager.mjs';
import { QuietTree, TREE } from '../torture/quiet-tree.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ALL = affinity();
const CPUS = 16;
const EVERY = CpuSet.parse(`0-${CPUS - 1}`);
const pathOf = (irq: number) => `/proc/irq/${irq}/smp_affinity_list`;
const IRQ = pathOf(24);
const NEW_IRQ = 99;

async function grantOf(cpu: number) {
  const stateDir = makeStateDir();
  const tree = new QuietTree(join(stateDir, TREE), CPUS);
  tree.make();
  const manager = await openQuietManager(ROOT, { stateDir, cpuManagerReconcilePeriod: 0 });
  const drifts: Drift[] = [];
  manager.on('drift', (drift) => drifts.push(drift));
  const grant = await manager.acquire({ cpu, quiet: { interrupts: true } });
  onTestFinished(() => manager.close());
  const quiet = String(EVERY.difference(grant.cpus));
  const recorded = () => Ledger.open(stateDir).read()!.assignments.quiet?.settings ?? [];
  return { tree, manager, drifts, grant, quiet, recorded };
}

describe.runIf(ALL.size > 1 && ALL.isSubsetOf(EVERY))('an interrupt', () => {
  it('that another program has moved back is moved away again, and reported', async () => {
    const { tree, manager, drifts, grant, quiet } = await grantOf(1);
    expect(tree.read().get(IRQ)).toBe(quiet);
    tree.set(IRQ, '0-3');
    const report = await manager.reconcile();
    expect(report).toMatchObject({ repaired: 1, contested: 0 });
    expect(drifts).toMatchObject([{ kind: 'quiet', uid: null, repaired: true, contested: false }]);
    expect(drifts[0]!.what).toContain('IRQ 24 (eth0-24) is 0-3');
    expect(tree.read().get(IRQ)).toBe(String(CpuSet.parse('0-3').difference(grant.cpus)));
    await grant.release();
    expect(tree.read().get(IRQ)).toBe('0-3');
  });

  it('that another program has moved stays there after the grant, and a channel reports it', async () => {
    const { tree, grant } = await grantOf(1);
    const messages: unknown[] = [];
    const listen = (message: unknown) => messages.push(message);
    subscribe('numalign:drift', listen);
    onTestFinished(() => void unsubscribe('numalign:drift', listen));
    tree.set(IRQ, '15');
    await grant.release();
    expect(tree.read().get(IRQ)).toBe('15');
    const what = 'IRQ 24 (eth0-24) stays 15, which another program has set';
    expect(messages).toMatchObject([{ kind: 'quiet', uid: null, what, repaired: false }]);
  });

  it('that was moved away twice and comes back once more is contested, and left alone', async () => {
    const { tree, manager, drifts, grant } = await grantOf(1);
    const moveBack = () => tree.set(IRQ, '0-3');
    for (let round = 0; round < 2; round++) {
      moveBack();
      expect(await manager.reconcile()).toMatchObject({ repaired: 1, contested: 0 });
    }
    moveBack();
    expect(await manager.reconcile()).toMatchObject({ repaired: 0, contested: 1 });
    expect(tree.read().get(IRQ)).toBe('0-3');
    expect(drifts.map(({ repaired, contested }) => [repaired, contested])).toEqual([
      [true, false],
      [true, false],
      [false, true],
    ]);
    // Others are still repaired, and it is reported once.
    tree.set(pathOf(26), '0-3');
    expect(await manager.reconcile()).toMatchObject({ repaired: 1, contested: 1 });
    expect([tree.read().get(IRQ), drifts.length]).toEqual(['0-3', 4]);
    await grant.release();
    expect(tree.read().get(IRQ)).toBe('0-3');
  });

  it('that appears later leaves the CPUs in the next round, and has its own affinity in the end', async () => {
    const { tree, manager, grant, quiet } = await grantOf(1);
    tree.addInterrupt(NEW_IRQ, String(EVERY));
    expect(await manager.reconcile()).toMatchObject({ repaired: 1, contested: 0 });
    const affinityNow = () => tree.valueOf(pathOf(NEW_IRQ));
    expect(affinityNow()).toBe(quiet);
    await grant.release();
    expect(affinityNow()).toBe(String(EVERY));
  });

  it('that disappears is no drift, and off the record with the next change', async () => {
    const { tree, manager, drifts, recorded } = await grantOf(1);
    tree.addInterrupt(NEW_IRQ, String(EVERY));
    await manager.reconcile();
    expect(recorded().map(({ path }) => path)).toContain(pathOf(NEW_IRQ));
    tree.removeInterrupt(NEW_IRQ);
    expect(await manager.reconcile()).toMatchObject({ repaired: 0, contested: 0 });
    expect(drifts).toHaveLength(1);
    tree.set(IRQ, '0-3');
    await manager.reconcile();
    expect(recorded().map(({ path }) => path)).not.toContain(pathOf(NEW_IRQ));
  });
});
