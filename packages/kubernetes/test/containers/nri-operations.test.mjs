// What an operator sees of real containers: lines of the log, metrics, health and Events.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { NumalignNode, PrometheusMetrics } from '@numalign/kubernetes';
import { ALL, EXCLUSIVE, guaranteed, until, useNodeFixture } from './support/node-fixture.mjs';

describe('The operator of a node', () => {
  const fixture = useNodeFixture();

  /** A node whose messages, metrics and Events are kept. */
  async function startSeen(test) {
    const manager = await fixture.openManager();
    const metrics = await PrometheusMetrics.open();
    const [lines, events] = [[], []];
    const node = new NumalignNode({
      ...{ manager, metrics, nriSocket: fixture.runtime.nriSocketPath },
      log: (level, message, fields) => lines.push({ level, message, ...fields }),
      recordEvent: (event) => events.push(event),
    });
    await node.start();
    test.after(() => node.close());
    const decisions = (decision) => lines.filter((line) => line.decision === decision);
    const scraped = async (line) => (await metrics.register.metrics()).split('\n').includes(line);
    return { node, events, decisions, scraped };
  }

  it('sees who was refused, and why', async (test) => {
    const { decisions, events, scraped } = await startSeen(test);
    const pod = fixture.pods.runPod('greedy', { namespace: 'shop', resources: guaranteed(1000) });
    await assert.rejects(pod, /cpu: 1000 requested/);
    const [line, ...others] = decisions('refuse');
    assert.deepEqual(others, []);
    const { level, pod: name, container, code, ms } = line;
    assert.deepEqual([level, name, container], ['warn', 'shop/greedy', 'main']);
    assert.ok(ms > 0 && ms < 2000, `${ms} ms`);
    assert.ok(await scraped(`numalign_node_admissions_total{result="refused",reason="${code}"} 1`));
    const { about, reason, message } = events.at(-1);
    assert.deepEqual([about.namespace, about.name, reason], ['shop', 'greedy', 'PlacementRefused']);
    assert.match(message, /^container main is refused: /);
  });

  it('sees who has which CPUs, and when they are free again', async (test) => {
    const { node, decisions, events, scraped } = await startSeen(test);
    const pod = await fixture.pods.runPod('owner', EXCLUSIVE);
    const { cpus } = await pod.seen();
    assert.deepEqual(
      decisions('admit').map(({ pod: name, kind, cpus: given }) => [name, kind, given]),
      [['default/owner', 'exclusive', cpus]],
    );
    assert.ok(await scraped('numalign_node_containers{kind="exclusive"} 1'));
    assert.equal(node.condition.isMet, true);
    assert.match(node.condition.text, /^registered with containerd /);
    assert.deepEqual(
      events.map(({ reason }) => reason),
      ['RuntimeConnected', 'CPUsAssigned'],
    );
    await pod.remove();
    await until('its release is logged', () => decisions('release').some((line) => line.cpus === cpus));
    assert.ok(await scraped('numalign_node_containers{kind="exclusive"} 0'));
  });

  it('sees that another program has moved a container', async (test) => {
    const { decisions, events, scraped } = await startSeen(test);
    const pod = await fixture.pods.runPod('moved', EXCLUSIVE);
    writeFileSync(join(await pod.cpusetFolder(), 'cpuset.cpus'), ALL.cpus);
    await until('it is put back', () => decisions('repair').length > 0);
    assert.equal(decisions('repair')[0].pod, 'default/moved');
    assert.equal(events.at(-1).reason, 'CPUsRestored');
    assert.ok(await scraped('numalign_node_repairs_total{kind="exclusive"} 1'));
  });

  it('sees that the runtime has ended, until it is back', async (test) => {
    const { node, events } = await startSeen(test);
    await fixture.runtime.restart();
    await until('the node is told', () => events.some(({ reason }) => reason === 'RuntimeDisconnected'));
    await until('it is registered again', () => node.condition.isMet);
    assert.equal(events.at(-1).reason, 'RuntimeConnected');
  });
});
