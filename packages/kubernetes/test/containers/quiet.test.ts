// Quiet containers and classes of the runtime, on a simulated machine and with a played runtime.
import { describe, expect, it, onTestFinished } from 'vitest';
import { NriPlugin } from '../../lib/nri/plugin.js';
import { FakeRuntime } from '../support/fake-runtime.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { MACHINE, simulatedNode } from '../support/simulated-node.js';
import { socketFolder } from '../support/socket-folder.js';

const GIB = 2 ** 30;
const prefixed = (keys: Record<string, string>) =>
  Object.fromEntries(Object.entries(keys).map(([key, value]) => [`numalign.io/${key}`, value]));
const annotated = (keys: Record<string, string>) => podOf({ annotations: prefixed(keys) });
const exclusive = containerOf({ id: 'a', cpus: 2, memory: GIB });

describe('A container that is to be quiet', () => {
  it('runs although the machine cannot be quiet, which is logged; kernel work has its lowest CPU', async () => {
    const { handlers, lines, manager } = await simulatedNode();
    const pod = annotated({ quiet: 'interrupts,idle=5', housekeeping: '1' });
    const { adjust } = await handlers.createContainer(pod, exclusive);
    expect(adjust.env).toContainEqual({ key: 'NUMALIGN_HOUSEKEEPING_CPUS', value: '0' });
    expect(Object.keys(manager.pod('a').quiet!.parts)).toEqual(['interrupts', 'idle']);
    expect(lines).toContain(
      'warn: numalign:default/web/main is not fully quiet: interrupts is reached not at all: the machine is simulated; idle is reached not at all: the machine is simulated',
    );
  });

  it('is refused if it must be quiet, and nothing is granted', async () => {
    const { handlers, manager } = await simulatedNode();
    const pod = annotated({ quiet: 'all', 'require-quiet': 'idle' });
    await expect(handlers.createContainer(pod, exclusive)).rejects.toMatchObject({ code: 'ERR_QUIET' });
    expect(manager.grants()).toEqual([]);
  });

  it('is said not to be quiet if its CPUs were granted before without', async () => {
    const { handlers, lines } = await simulatedNode();
    await handlers.createContainer(podOf(), exclusive);
    await handlers.createContainer(annotated({ quiet: 'idle' }), exclusive);
    expect(lines.at(-1)).toMatch(/not fully quiet: the CPUs were not granted as quiet ones$/);
  });
});

it('One thread of each core of a container runs, and the others stay idle, with smt: hold-sibling', async () => {
  const { handlers, manager } = await simulatedNode({}, MACHINE.replace('pu:1', 'pu:2'));
  const { adjust } = await handlers.createContainer(annotated({ smt: 'hold-sibling' }), exclusive);
  expect([adjust.linux?.resources?.cpu?.cpus, `${manager.sharedPool()}`]).toEqual(['0,2', '4-15']);
});

it('Classes of RDT and of block devices reach the runtime', async () => {
  const place = socketFolder();
  const { socketPath } = place;
  const runtime = await FakeRuntime.listen(socketPath);
  const { handlers } = await simulatedNode();
  const plugin = new NriPlugin({ socketPath, name: 'numalign', index: '90', handlers, log: () => {} });
  onTestFinished(async () => {
    await plugin.close();
    await runtime.close();
    place.remove();
  });
  const starting = plugin.start();
  const peer = await runtime.synchronizedPlugin();
  await starting;
  const pod = annotated({ 'rdt-class': 'gold', 'blockio-class.main': 'slow' });
  const { adjust } = await peer.createContainer(pod, exclusive);
  expect(adjust.linux.resources).toMatchObject({
    ...{ cpu: { cpus: '0-1' }, rdt_class: { value: 'gold' }, blockio_class: { value: 'slow' } },
  });
  const plain = await peer.createContainer(podOf(), containerOf({ id: 'b' }));
  expect(plain.adjust.linux.resources).toMatchObject({ rdt_class: null, blockio_class: null });
});
