// Events at a real API server, of real containers, written by the service account of the examples.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NodeAgent } from '@numalign/kubernetes';
import { openManager } from 'numalign';
import { parseAllDocuments } from 'yaml';
import { Containerd } from '../containers/support/containerd.mjs';
import { guaranteed, managerOptions, until } from '../containers/support/node-fixture.mjs';
import { Pods } from '../containers/support/pods.mjs';
import { KubeApiServer } from './api-server.mjs';
import { prepareApiServer } from './build.mjs';
import { prepareEtcd } from './etcd.mjs';

const RBAC = new URL('../../deploy/kustomize/base/numalign-node.yaml', import.meta.url);
const NODE = 'worker-1';
const REFUSED = { resources: guaranteed(1000) };

describe('Events', () => {
  let [folder, server, runtime, pods, manager, agent] = [];
  const lines = [];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'numalign-kube-'));
    server = new KubeApiServer({ etcd: prepareEtcd(), apiServer: prepareApiServer() }, folder);
    runtime = await Containerd.start();
    pods = new Pods(runtime);
    await server.start();
    for (const document of parseAllDocuments(readFileSync(RBAC, 'utf8'))) await server.apply(document.toJS());
    await server.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, await server.accountToken('numalign', 'numalign-node'));
    manager = await openManager(managerOptions(join(folder, 'state')));
    agent = new NodeAgent({
      ...{ manager, devicePlugin: null, kubelet: null, publish: null },
      log: (level, message) => lines.push(`${level}: ${message}`),
      nri: { nriSocket: runtime.nriSocketPath },
      events: { nodeName: NODE, apiServer: { url: server.url, caFile: server.caFile, tokenFile } },
    });
    await agent.start();
  });
  after(async () => {
    await agent?.close();
    manager?.close();
    await pods?.close();
    await runtime?.close();
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The Events of a reason, once there is one for which `look` holds. */
  const written = (namespace, reason, look = () => true) =>
    until(`an Event ${reason} in ${namespace}`, async () => {
      const path = `/api/v1/namespaces/${namespace}/events?fieldSelector=reason%3D${reason}`;
      const { items } = (await server.ask('GET', path)).object;
      return items.some(look) && items;
    });

  it('say of the node that the runtime has the plugin', async () => {
    const [{ involvedObject, source, message }] = await written('default', 'RuntimeConnected');
    assert.deepEqual([involvedObject.kind, involvedObject.name, involvedObject.uid], ['Node', NODE, NODE]);
    assert.deepEqual(source, { component: 'numalign-node', host: NODE });
    assert.match(message, /^numalign-node places the containers of containerd /);
  });

  it('say of a pod why it is refused, in one object however often', async () => {
    const options = { namespace: 'shop', uid: 'uid-of-greedy', ...REFUSED };
    for (let i = 0; i < 3; i++) await assert.rejects(pods.runPod('greedy', options));
    // It is written again after 10 s.
    const [event, ...others] = await written('shop', 'PlacementRefused', ({ count }) => count === 3);
    assert.deepEqual(others, []);
    const { involvedObject, type, message } = event;
    assert.deepEqual([involvedObject.name, involvedObject.uid, type], ['greedy', 'uid-of-greedy', 'Warning']);
    assert.equal(involvedObject.fieldPath, 'spec.containers{main}');
    assert.match(message, /^container main is refused: the resources cannot be aligned/);
  });

  it('of a namespace that there is not are lost, which the log says, and nothing else is', async () => {
    const options = { namespace: 'nowhere', ...REFUSED };
    await assert.rejects(pods.runPod('lost', options));
    await until('the log says so', () => lines.some((line) => line.includes('Events cannot be written')));
    const pod = await pods.runPod('fine', { namespace: 'shop', resources: guaranteed(1) });
    await written('shop', 'CPUsAssigned');
    await pod.remove();
    assert.equal(agent.conditions.find(({ part }) => part === 'events').isMet, true);
  });
});
