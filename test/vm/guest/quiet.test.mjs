// Grants that ask for quiet, against interrupts, queues and work of a kernel under traffic. On the
// machine `quiet`, root. Run by node --test.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, test } from 'node:test';
import { isLong } from '../../support/budget.mjs';
import * as kernel from './kernel-view.mjs';
import * as view from './quiet-view.mjs';
import { newStateDir, open } from './state-folders.mjs';

const CPUS = kernel.online();
const many = view.networkCard(1);
const spare = view.networkCard(2);
const queueIrqs = (card = many) =>
  view.interruptsOf(card.pci).filter((irq) => view.handlersOf(irq).includes('put'));
/** A CPU of each node, of which each has a queue of the card. */
const SENDERS = [0, 2, 4, 6];
const stop = await view.startPings(many, SENDERS);
after(stop);

/** All CPUs of a node, for one grant. */
async function acquireOn(manager, node, quiet, more = {}) {
  const others = kernel.online().filter((cpu) => !kernel.cpusOfNode(node).includes(cpu));
  const fillers = [];
  for (const before of kernel.nodeIds().filter((id) => id < node)) {
    const filler = await manager.acquire({ cpu: kernel.cpusOfNode(before).length });
    assert.ok(filler.cpus.toArray().every((cpu) => others.includes(cpu)));
    fillers.push(filler);
  }
  const grant = await manager.acquire({ cpu: kernel.cpusOfNode(node).length, quiet, ...more });
  for (const filler of fillers) await filler.release();
  assert.deepEqual(grant.cpus.toArray(), kernel.cpusOfNode(node));
  return grant;
}

const areOff = (irqs, cpus) => irqs.every((irq) => !view.meet(view.affinityOf(irq), cpus));
/** Once they are delivered elsewhere: each may come once more to where it was. */
const haveLeft = (irqs, cpus) =>
  view.until('interrupts leave', () => irqs.every((irq) => !view.meet(view.effectiveOf(irq), cpus)));

test('under traffic no interrupt of a device comes to a quiet grant, and all are as before after it', async () => {
  const cpus = kernel.cpusOfNode(many.node);
  const before = view.settings(many.pci, spare.pci);
  const seconds = isLong ? 10 : 4;
  assert.notDeepEqual(await view.deliveries(cpus, 1000), {});
  const manager = await open();
  const grant = await acquireOn(manager, many.node, { interrupts: true, packets: true });
  await haveLeft(queueIrqs(), cpus);
  assert.deepEqual(await view.deliveries(cpus, seconds * 1000), {});
  const elsewhere = Object.keys(await view.deliveries(CPUS, 1000)).map(Number);
  for (const irq of queueIrqs()) assert.ok(elsewhere.includes(irq), `${view.handlersOf(irq)}: no traffic`);
  assert.ok(areOff(queueIrqs(), cpus));
  await grant.release();
  assert.deepEqual(view.settings(many.pci, spare.pci), before);
});

test('queues of packets are served by other CPUs than those of a quiet grant', async () => {
  const masks = ['rx', 'tx'].flatMap((direction) =>
    [0, 1, 2, 3].map(
      (queue) =>
        `/sys/class/net/${many.name}/queues/${direction}-${queue}/${direction === 'rx' ? 'rps' : 'xps'}_cpus`,
    ),
  );
  for (const mask of masks.slice(0, 4)) writeFileSync(mask, 'ff');
  const before = view.settings();
  const manager = await open();
  const grant = await acquireOn(manager, many.node, { packets: true });
  const bits = view.bitsOf(grant.cpus.toArray());
  for (const mask of masks) {
    assert.equal(view.maskOf(mask) & bits, 0n, mask);
    assert.notEqual(view.maskOf(mask), 0n, mask);
  }
  await grant.release();
  assert.deepEqual(view.settings(), before);
  for (const mask of masks.slice(0, 4)) writeFileSync(mask, '0');
});

test('a card that is brought up after the grant has no interrupts on its CPUs', async () => {
  const manager = await open();
  view.unbind(spare);
  const grant = await acquireOn(manager, 0, { interrupts: true });
  view.bind(spare);
  const irqs = view.interruptsOf(spare.pci);
  assert.equal(irqs.length, 3);
  assert.ok(areOff(irqs, grant.cpus.toArray()));
  assert.deepEqual((await manager.reconcile()).drifts, []);
  await grant.release();
});

test('a card whose driver places its interrupts has them moved in the next round', async () => {
  const manager = await open();
  const grant = await acquireOn(manager, many.node, { interrupts: true, packets: true });
  const cpus = grant.cpus.toArray();
  view.unbind(many);
  view.bind(many);
  try {
    assert.ok(!areOff(queueIrqs(), cpus), 'its driver puts queues beside CPUs');
    await manager.reconcile();
    assert.ok(areOff(view.interruptsOf(many.pci), cpus));
    assert.deepEqual((await manager.reconcile()).drifts, []);
  } finally {
    await grant.release();
  }
});
