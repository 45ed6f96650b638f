// Quiet grants, against interrupts, queues and work of a kernel under traffic. On the machine
// `quiet`, root. Run by node --test.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { isLong } from '../../support/budget.mjs';
import * as kernel from './kernel-view.mjs';
import { acquireOn } from './quiet-grant.mjs';
import * as view from './quiet-view.mjs';
import { open } from './state-folders.mjs';

const CPUS = kernel.online();
const many = view.networkCard(1);
const spare = view.networkCard(2);
const NEAR = kernel.cpusOfNode(many.node);
const queueIrqs = () => view.interruptsOf(many.pci).filter((irq) => view.handlersOf(irq).includes('put'));
const areOff = (irqs, cpus) => irqs.every((irq) => !view.meet(view.affinityOf(irq), cpus));

/** With a ping from a CPU of each node, each with its own queue. */
async function underTraffic(body) {
  const stop = await view.startPings(many, [0, 2, 4, 6]);
  try {
    return await body();
  } finally {
    await stop();
  }
}

test('under traffic no interrupt of a device reaches a quiet grant, and all are restored after it', async () => {
  await underTraffic(async () => {
    const before = view.settings(many.pci, spare.pci);
    assert.notDeepEqual(await view.deliveries(NEAR, 1000), {});
    const manager = await open();
    const grant = await acquireOn(manager, many.node, { quiet: { interrupts: true } });
    // Each may arrive once more at its old place.
    const isElsewhere = (irq) => !view.meet(view.effectiveOf(irq), NEAR);
    await view.until('interrupts leave', () => queueIrqs().every(isElsewhere));
    assert.deepEqual(await view.deliveries(NEAR, isLong ? 10_000 : 4000), {});
    const elsewhere = Object.keys(await view.deliveries(CPUS, 1000)).map(Number);
    for (const irq of queueIrqs()) assert.ok(elsewhere.includes(irq), `${view.handlersOf(irq)}: no traffic`);
    assert.ok(areOff(queueIrqs(), NEAR));
    await grant.release();
    assert.deepEqual(view.settings(many.pci, spare.pci), before);
    assert.notDeepEqual(await view.deliveries(NEAR, 1000), {});
  });
});

test('an interrupt that the kernel manages is reported with its error, and the others are moved', async () => {
  const manager = await open();
  const grant = await acquireOn(manager, 3, { quiet: { interrupts: true } });
  const { reached, reasons } = grant.quiet.parts.interrupts;
  assert.equal(reached, 'partly');
  const managed = reasons.filter((reason) => /nvme0q\d/.test(reason));
  assert.equal(managed.length, 1, reasons.join('\n'));
  assert.match(managed[0], /^IRQ \d+ \(nvme0q4\) .*CPUs [67].*\((EPERM|EIO)\)$/);
  await grant.release();
  await assert.rejects(
    acquireOn(manager, 3, { quiet: true, require: { quiet: ['interrupts'] } }),
    (error) => {
      assert.match(error.message, /nvme0q4/);
      return true;
    },
  );
  assert.deepEqual(manager.grants(), []);
});

test('queues are served by CPUs outside a quiet grant', async () => {
  const folder = `/sys/class/net/${many.name}/queues`;
  const queues = [0, 1, 2, 3];
  const steering = queues.map((queue) => `${folder}/rx-${queue}/rps_cpus`);
  for (const mask of steering) writeFileSync(mask, 'ff');
  const masks = [...steering, ...queues.map((queue) => `${folder}/tx-${queue}/xps_cpus`)];
  const before = view.settings();
  const manager = await open();
  const grant = await acquireOn(manager, many.node, { quiet: { packets: true } });
  for (const mask of masks) {
    assert.equal(view.maskOf(mask) & view.bitsOf(NEAR), 0n, mask);
    assert.notEqual(view.maskOf(mask), 0n, mask);
  }
  assert.deepEqual(grant.quiet.parts.packets, { reached: 'yes', reasons: [] });
  await grant.release();
  assert.deepEqual(view.settings(), before);
  for (const mask of steering) writeFileSync(mask, '0');
});

test('unbound work leaves a quiet grant, and threads that sleep there wake up soon', async () => {
  const before = view.settings();
  const manager = await open();
  const quiet = { workqueues: true, idle: { maxLatency: 7 } };
  const grant = await acquireOn(manager, 2, { quiet });
  const masks = Object.keys(before).filter((path) => path.includes('/workqueue/'));
  assert.ok(masks.length >= 2);
  for (const path of masks) assert.equal(view.maskOf(path), 0b11001111n, path);
  const latencies = CPUS.map((cpu) => kernel.read(view.latencyFile(cpu)));
  assert.deepEqual(latencies, ['0', '0', '0', '0', '7', '7', '0', '0']);
  await grant.release();
  assert.deepEqual(view.settings(), before);
});

test('a card that is brought up after the grant has no interrupts on its CPUs', async () => {
  const manager = await open();
  const grant = await acquireOn(manager, spare.node, { quiet: { interrupts: true } });
  view.rebind(spare);
  view.setUp(spare);
  const irqs = view.interruptsOf(spare.pci);
  assert.ok(irqs.every((irq) => view.handlersOf(irq) !== ''));
  assert.ok(areOff(irqs, grant.cpus.toArray()), irqs.map(view.affinityOf).join(' '));
  await grant.release();
  view.rebind(spare);
});

test('interrupts that a driver puts back are moved in the next round', async () => {
  const manager = await open();
  const grant = await acquireOn(manager, many.node, { quiet: { interrupts: true, packets: true } });
  view.rebind(many);
  assert.ok(!areOff(queueIrqs(), NEAR), 'its driver puts queues beside CPUs');
  await manager.reconcile();
  assert.ok(areOff(view.interruptsOf(many.pci), NEAR));
  assert.deepEqual((await manager.reconcile()).drifts, []);
  await grant.release();
});

test('a new interrupt with the number of one that was moved counts as a new one', async () => {
  const manager = await open();
  const grant = await acquireOn(manager, many.node, { quiet: { interrupts: true } });
  const [former, other] = [many, spare].map(({ pci }) => view.interruptsOf(pci));
  view.unbind(many);
  view.unbind(spare);
  // In the other order: each has numbers that the other had.
  view.bind(spare);
  view.bind(many);
  const [latter, another] = [many, spare].map(({ pci }) => view.interruptsOf(pci));
  assert.notDeepEqual([latter, another], [former, other]);
  assert.ok(view.meet([...former, ...other], [...latter, ...another]));
  const placed = queueIrqs().map(view.affinityOf);
  await manager.reconcile();
  assert.ok(areOff(latter, NEAR));
  await grant.release();
  assert.deepEqual(queueIrqs().map(view.affinityOf), placed);
  view.rebind(spare);
  view.rebind(many);
});

test('a CPU that goes offline and comes back leaves the grant as quiet as it was', async () => {
  const manager = await open({ reservedSystemCPUs: '0' });
  const grant = await acquireOn(manager, many.node, { quiet: { interrupts: true, packets: true } });
  const isQuiet = () => {
    assert.ok(
      areOff(queueIrqs(), grant.cpus.toArray()),
      `${grant.cpus}: ${queueIrqs().map(view.affinityOf).join(' ')}`,
    );
    assert.deepEqual(grant.quiet.parts.packets.reached, 'yes');
  };
  const online = (value) => writeFileSync('/sys/devices/system/cpu/cpu3/online', value);
  online('0');
  try {
    await manager.reconcile();
    assert.ok(!grant.cpus.has(3));
    isQuiet();
  } finally {
    online('1');
  }
  await manager.reconcile();
  isQuiet();
  await grant.release();
  // The driver has placed them with each change of CPUs.
  view.rebind(many);
});
