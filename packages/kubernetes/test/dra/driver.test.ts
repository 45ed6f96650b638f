// needs: nothing
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Message } from '../../lib/protobuf/schema.js';
import { allocated, DRIVER, DraNode, environmentOf, nameOf } from './dra-node.js';

const claimOf = (name: string, cpu = 1, node = 0) =>
  allocated(name, [{ device: `node-${node}`, capacity: { cpu: String(cpu) } }]);

it('answers a call for many claims one by one: one that fails keeps no other back', async () => {
  const dra = await DraNode.open();
  const [good, large] = [claimOf('good'), claimOf('large', 4)];
  dra.claims.put(good, large);
  const names = [nameOf(large), { namespace: 'default', name: 'none', uid: 'none' }, nameOf(good)];
  const answers = await dra.plugin.prepareAll(names);
  expect(Object.keys(answers).sort()).toEqual(['good-uid', 'large-uid', 'none']);
  expect(answers['good-uid']).toMatchObject({ error: '', devices: [{ device_name: 'node-0' }] });
  expect(answers['large-uid']!.error).toMatch(/^ERR_(INSUFFICIENT_CPUS|TOPOLOGY_AFFINITY): /);
  expect(answers.none!.error).toMatch(/^ERR_API_NOT_FOUND: /);
  expect(await dra.plugin.unprepareAll(names)).toEqual({
    ...{ 'good-uid': { error: '' }, 'large-uid': { error: '' }, none: { error: '' } },
  });
});

it('speaks v1beta1 to a kubelet that has no v1', async () => {
  const dra = await DraNode.open();
  const claim = allocated('a', [{ device: 'node-0', capacity: { cpu: '1' }, shareID: 'share' }]);
  dra.claims.put(claim);
  const old = dra.kubelet.plugin(await dra.kubelet.register(), 'v1beta1');
  expect(await old.prepare(nameOf(claim))).toMatchObject([{ device_name: 'node-0' }]);
  expect(await dra.plugin.prepare(nameOf(claim))).toMatchObject([{ share_id: 'share' }]);
  await old.unprepare(nameOf(claim));
  expect(dra.node.manager.grants()).toEqual([]);
});

it('reads claims in the newest version that the API server has', async () => {
  const dra = await DraNode.open();
  const claim = claimOf('a');
  dra.claims.put(claim);
  dra.claims.versions = ['v1beta1'];
  await dra.plugin.prepare(nameOf(claim));
  expect(dra.claims.gets).toBe(3);
  await dra.plugin.prepare(nameOf(claim));
  expect(dra.claims.gets).toBe(4);
});

it('finds what a call had done for which the kubelet waited no longer', async () => {
  const dra = await DraNode.open();
  const claim = claimOf('a');
  dra.claims.put(claim);
  let answer = () => {};
  const asked = new Promise<void>((resolve) => {
    dra.claims.before = () => {
      resolve();
      return new Promise<void>((go) => {
        answer = go;
      });
    };
  });
  const late = dra.plugin.prepare(nameOf(claim), 3000);
  await asked;
  await expect(late).rejects.toMatchObject({ code: 4 });
  dra.claims.before = () => {};
  answer();
  const [device] = await dra.plugin.prepare(nameOf(claim));
  expect(device!.cdi_device_ids).toEqual([`${DRIVER}/claim=a-uid-0`]);
  expect(dra.node.manager.grants()).toHaveLength(1);
});

it('ends with nothing where a claim is unprepared before it is prepared', async () => {
  const dra = await DraNode.open();
  const claim = claimOf('a');
  dra.claims.put(claim);
  dra.claims.before = () => new Promise((resolve) => setTimeout(resolve, 30));
  const prepared = dra.plugin.prepare(nameOf(claim));
  await new Promise((resolve) => setTimeout(resolve, 10));
  await dra.plugin.unprepare(nameOf(claim));
  await prepared;
  expect(dra.node.manager.grants()).toEqual([]);
  expect(dra.driver.findClaim('a-uid')).toBeUndefined();
});

it('is told that the kubelet refuses it', async () => {
  const dra = await DraNode.open();
  await dra.kubelet.register(undefined, 'no such API');
  expect(dra.driver.condition).toEqual({
    ...{ part: 'dra', isMet: false, isVital: false },
    text: `the kubelet refuses ${DRIVER}: no such API`,
  });
});

it('has two instances during an update, which know of each other’s claims', async () => {
  const dra = await DraNode.open();
  const [one, two] = [claimOf('a'), claimOf('b')];
  dra.claims.put(one, two);
  await dra.plugin.prepare(nameOf(one));
  const newer = dra.makeDriver({ instance: '0b0d' });
  await newer.start();
  onTestFinished(() => newer.close());
  expect(dra.kubelet.announced).toEqual([`${DRIVER}-0b0d-reg.sock`, `${DRIVER}-reg.sock`]);
  const plugin = dra.kubelet.plugin(await dra.kubelet.register(`${DRIVER}-0b0d-reg.sock`));
  await plugin.prepare(nameOf(one));
  await plugin.prepare(nameOf(two));
  await dra.driver.close();
  expect(dra.kubelet.announced).toEqual([`${DRIVER}-0b0d-reg.sock`]);
  await plugin.unprepare(nameOf(one));
  expect(dra.node.manager.grants().map(({ uid }) => uid)).toEqual(['claim.b-uid.0']);
});

it('refuses to start beside an instance with the same sockets', async () => {
  const dra = await DraNode.open();
  const second = dra.makeDriver();
  await expect(second.start()).rejects.toMatchObject({ code: 'ERR_SOCKET_IN_USE' });
  await second.close();
  await dra.plugin.unprepare({ namespace: 'default', name: 'a', uid: 'a' });
});

it('announces itself again where someone has removed its sockets', async () => {
  const dra = await DraNode.open();
  const registry = join(dra.kubelet.folder, 'plugins_registry');
  rmSync(registry, { recursive: true });
  await expect.poll(() => existsSync(join(registry, `${DRIVER}-reg.sock`))).toBe(true);
  await dra.kubelet.register();
});

it('streams the health of devices that claims have', async () => {
  const dra = await DraNode.open();
  const claim = claimOf('a');
  dra.claims.put(claim);
  const seen: Message[][] = [];
  const stream = dra.plugin.watch((devices) => seen.push(devices));
  await expect.poll(() => seen).toEqual([[]]);
  await dra.plugin.prepare(nameOf(claim));
  await expect
    .poll(() => seen.at(-1))
    .toMatchObject([{ device: { pool_name: 'node', device_name: 'node-0' }, health: 1, message: '' }]);
  await dra.node.manager.release('claim.a-uid.0');
  await expect.poll(() => seen.at(-1)).toMatchObject([{ health: 2, message: 'its grant was released' }]);
  stream.cancel();
});

it('gives back what a claim has that is gone, unless a container has it', async () => {
  const dra = await DraNode.open();
  const claims = [claimOf('gone'), claimOf('used'), claimOf('there', 1, 1), claimOf('replaced', 1, 1)];
  dra.claims.put(...claims);
  for (const claim of claims) await dra.plugin.prepare(nameOf(claim));
  const env = environmentOf(dra.cdiFolder, ['claim.used-uid.0']);
  const { pod, container, cgroupsPath } = dra.container('pod', 'main', env);
  await dra.handlers.createContainer(pod, container);
  dra.node.makeCgroup(cgroupsPath, '1', [1]);
  for (const name of ['gone', 'used']) dra.claims.claims.delete(name);
  dra.claims.put(allocated('replaced', [], { uid: 'newer' }));
  await dra.driver.close();
  await dra.start();
  const left = () =>
    dra.node.manager
      .grants()
      .map(({ uid }) => uid)
      .sort();
  await expect.poll(left).toEqual(['claim.there-uid.0', 'claim.used-uid.0']);
});

it('gives back nothing while it is not known what is gone', async () => {
  const dra = await DraNode.open();
  const claim = claimOf('a');
  dra.claims.put(claim);
  await dra.plugin.prepare(nameOf(claim));
  await dra.driver.close();
  dra.claims.versions = [];
  const gets = dra.claims.gets;
  await dra.start();
  await expect.poll(() => dra.claims.gets).toBe(gets + 3);
  await dra.plugin.unprepare({ namespace: 'default', name: 'other', uid: 'other' });
  expect(dra.node.manager.grants()).toHaveLength(1);
});

it('prepares nothing while the runtime does not call numalign', async () => {
  const dra = await DraNode.open();
  const claim = claimOf('a');
  dra.claims.put(claim);
  dra.nriFlaw = 'waits for /var/run/nri/nri.sock';
  await expect(dra.plugin.prepare(nameOf(claim))).rejects.toThrow(/ERR_CLAIM_WITHOUT_NRI: .*waits for/);
  dra.nriFlaw = undefined;
  await dra.plugin.prepare(nameOf(claim));
});

it('refuses options that are wrong, with what is valid', async () => {
  const dra = await DraNode.open();
  for (const [option, value] of [
    ['cdiFolder', 'cdi'],
    ['kubeletFolder', 'kubelet'],
  ] as const)
    expect(() => dra.makeDriver({ [option]: value })).toThrow(
      expect.objectContaining({
        ...{ code: 'ERR_INVALID_OPTION', message: expect.stringContaining(option) },
        details: { value, valid: expect.any(String) },
      }),
    );
});
