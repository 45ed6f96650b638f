// Quiet grants beside programs that change the same settings, or end without notice: irqbalance, a
// program that moves interrupts back, owners that are killed, isolated partitions. On the machine
// `quiet`, root. Run by node --test.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openManager } from '../../../dist/index.js';
import { isLong } from '../../support/budget.mjs';
import * as kernel from './kernel-view.mjs';
import { acquireOn } from './quiet-grant.mjs';
import * as view from './quiet-view.mjs';
import { newStateDir, open } from './state-folders.mjs';

const INDEX = fileURLToPath(new URL('../../../dist/index.js', import.meta.url));
const many = view.networkCard(1);
const NEAR = kernel.cpusOfNode(many.node);
const WORK = '/sys/devices/virtual/workqueue/cpumask';
view.rebind(many);
const queueIrqs = () => view.interruptsOf(many.pci).filter((irq) => view.handlersOf(irq).includes('put'));
const areOff = (irqs, cpus) => irqs.every((irq) => !view.meet(view.affinityOf(irq), cpus));

const children = [];
after(() => children.forEach((child) => void child.kill('SIGKILL')));

/** Another process with a quiet grant of 2 CPUs, and those CPUs. */
async function startOwner(stateDir, request) {
  const options = { stateDir, sharedMember: false, cpuManagerReconcilePeriod: 0 };
  const script = `
    const { openManager } = await import(${JSON.stringify(INDEX)});
    const manager = await openManager(${JSON.stringify(options)});
    const grant = await manager.acquire(${JSON.stringify({ cpu: 2, ...request })});
    console.log(JSON.stringify(grant.cpus.toArray()));
    setInterval(() => {}, 1e6);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [data] = await once(child.stdout, 'data');
  return { child, cpus: JSON.parse(data) };
}

async function kill(child) {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

test('irqbalance runs beside a quiet grant, leaves it quiet, and is restored after it', async () => {
  const rival = await view.startIrqbalance();
  const stop = await view.startPings(many, [0, 2, 4, 6]);
  try {
    const before = view.bannedIn(await rival.ask('setup'));
    const manager = await open();
    const grant = await acquireOn(manager, many.node, { quiet: { interrupts: true } });
    const isElsewhere = (irq) => !view.meet(view.effectiveOf(irq), NEAR);
    await view.until('interrupts leave', () => queueIrqs().every(isElsewhere));
    const [seconds, rounds] = isLong ? [30, 6] : [8, 4];
    for (let round = 0; round < rounds; round++) {
      assert.deepEqual(await view.deliveries(NEAR, (seconds / rounds) * 1000), {});
      assert.deepEqual((await manager.reconcile()).drifts, []);
    }
    assert.equal(view.bannedIn(await rival.ask('setup')), view.bitsOf(NEAR));
    await grant.release();
    await view.until('irqbalance bans nothing more than before', async () => {
      return view.bannedIn(await rival.ask('setup')) === before;
    });
  } finally {
    await stop();
    await rival.end();
    view.rebind(many);
  }
});

test('an interrupt that another program moves back is moved again, and left after three fights', async () => {
  const manager = await open();
  const drifts = [];
  manager.on('drift', ({ kind, repaired, contested }) => drifts.push([kind, repaired, contested]));
  const grant = await acquireOn(manager, many.node, { quiet: { interrupts: true } });
  const [irq] = queueIrqs();
  for (let round = 0; round < 3; round++) {
    view.setAffinity(irq, '2');
    await manager.reconcile();
    assert.equal(areOff([irq], NEAR), round < 2, `round ${round}`);
  }
  assert.deepEqual(drifts, [
    ['quiet', true, false],
    ['quiet', true, false],
    ['quiet', false, true],
  ]);
  await grant.release();
  // Not numalign's value any more: it stays.
  assert.deepEqual(view.affinityOf(irq), [2]);
  view.rebind(many);
});

test('a running manager restores the changes of a killed owner', async (t) => {
  const stateDir = newStateDir();
  const manager = await open({ stateDir, cpuManagerReconcilePeriod: '1h' });
  const before = view.settings(many.pci);
  const { child } = await startOwner(stateDir, { quiet: true });
  assert.notDeepEqual(view.settings(many.pci), before);
  const begin = performance.now();
  await kill(child);
  await view.until('all is restored', () => {
    const now = view.settings(many.pci);
    // They are restored while the grant is on record.
    const isRestored = Object.keys(before).every((path) => now[path] === before[path]);
    return isRestored && manager.grants().length === 0;
  });
  t.diagnostic(`restored within ${Math.round(performance.now() - begin)} ms`);
});

test('the next opener of the state restores the changes of a killed owner', async () => {
  const stateDir = newStateDir();
  const before = view.settings(many.pci);
  const { child } = await startOwner(stateDir, { quiet: true });
  await kill(child);
  assert.notDeepEqual(view.settings(many.pci), before);
  const manager = await openManager({ stateDir, sharedMember: false });
  assert.deepEqual(view.settings(many.pci), before);
  manager.close();
});

test('an isolated partition and quiet agree on which CPUs do the work of the kernel', async () => {
  const before = view.settings(many.pci);
  const manager = await open({ cgroupRoot: '/numalign-quiet' });
  const grant = await acquireOn(manager, many.node, {
    ...{ require: 'isolated', quiet: { interrupts: true, workqueues: true, packets: true } },
  });
  assert.equal(view.maskOf(WORK) & view.bitsOf(NEAR), 0n);
  assert.deepEqual(grant.quiet.parts.workqueues, { reached: 'yes', reasons: [] });
  // Neither undoes the writes of the other.
  for (let round = 0; round < 2; round++) assert.deepEqual((await manager.reconcile()).drifts, []);
  assert.equal(grant.enforcement, 'isolated');
  // A partition comes and goes beside it.
  const other = await acquireOn(manager, 0, { require: 'isolated' });
  assert.deepEqual((await manager.reconcile()).drifts, []);
  await other.release();
  assert.equal(view.maskOf(WORK) & view.bitsOf(NEAR), 0n);
  await grant.release();
  assert.deepEqual(view.settings(many.pci), before);
});

test('work that an isolated partition keeps away stays away after a quiet grant beside it', async () => {
  const before = view.settings();
  const manager = await open({ cgroupRoot: '/numalign-quiet' });
  const partition = await acquireOn(manager, many.node, { require: 'isolated' });
  const during = view.settings();
  const grant = await manager.acquire({ cpu: 2, quiet: { workqueues: true } });
  assert.equal(view.maskOf(WORK) & view.bitsOf(grant.cpus.toArray()), 0n);
  await grant.release();
  assert.deepEqual(view.settings(), during);
  await partition.release();
  assert.deepEqual(view.settings(), before);
});
