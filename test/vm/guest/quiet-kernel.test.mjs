// The kernel behaviour that the tests of quiet grants rely on, without any grant: interrupts of
// network cards and disks with several queues, and irqbalance. On the machine `quiet`, root. Run by
// node --test.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import * as kernel from './kernel-view.mjs';
import * as view from './quiet-view.mjs';

const CPUS = kernel.online();
const many = view.networkCard(1);
const spare = view.networkCard(2);
const queueIrqs = () => view.interruptsOf(many.pci).filter((irq) => /put/.test(view.handlersOf(irq)));

test('a network card has a movable interrupt for each direction of each of its 4 queues', () => {
  assert.equal(many.node, 1);
  const irqs = queueIrqs();
  assert.deepEqual(
    irqs.map((irq) => view.handlersOf(irq).split('-')[1]).sort(),
    ['input', 'output'].flatMap((direction) => [0, 1, 2, 3].map((queue) => `${direction}.${queue}`)),
  );
  const [irq] = irqs;
  const before = view.affinityOf(irq);
  view.setAffinity(irq, '7');
  assert.deepEqual(view.affinityOf(irq), [7]);
  view.setAffinity(irq, before.join());
});

test('the kernel refuses to move the interrupts of a disk with several queues', () => {
  const irqs = kernel
    .output('sh', '-c', 'grep -l nvme0q[1-9] /sys/kernel/irq/*/actions')
    .match(/\d+(?=\/actions)/g);
  assert.equal(irqs.length, 4);
  for (const irq of irqs) assert.throws(() => view.setAffinity(irq, '0'), { code: /^(EPERM|EIO)$/ });
});

test('each CPU that sends has interrupts of its own queue', async () => {
  const stop = await view.startPings(many, [0, 2, 4, 6]);
  try {
    const irqs = Object.keys(await view.deliveries(CPUS, 1000)).map(Number);
    for (const irq of queueIrqs()) assert.ok(irqs.includes(irq), `${view.handlersOf(irq)}: none`);
  } finally {
    await stop();
  }
});

test('a network card that is brought up has interrupts on CPUs of the default', () => {
  const path = '/proc/irq/default_smp_affinity';
  const before = kernel.read(path);
  // One CPU of its node, and others.
  const allowed = [2, 3, 4];
  assert.equal(spare.node, 2);
  writeFileSync(path, view.bitsOf(allowed).toString(16));
  view.unbind(spare);
  assert.throws(() => view.interruptsOf(spare.pci), { code: 'ENOENT' });
  view.bind(spare);
  view.setUp(spare);
  try {
    const irqs = view.interruptsOf(spare.pci);
    assert.ok(irqs.every((irq) => view.handlersOf(irq) !== ''));
    assert.deepEqual(
      irqs.map(view.affinityOf),
      irqs.map(() => [4]),
    );
  } finally {
    writeFileSync(path, before);
    view.rebind(spare);
  }
});

test('irqbalance keeps interrupts off the CPUs that its socket bans', async () => {
  const { ask, end } = await view.startIrqbalance();
  const stop = await view.startPings(many, [0, 2, 4, 6]);
  try {
    assert.equal(view.bannedIn(await ask('setup')), 0n);
    await ask('settings cpus 2-3');
    await view.until('irqbalance bans', async () => view.bannedIn(await ask('setup')) === 0b1100n);
    await view.until('interrupts go', () =>
      queueIrqs().every((irq) => !view.meet(view.affinityOf(irq), [2, 3])),
    );
  } finally {
    await stop();
    await end();
    view.rebind(many);
  }
});
