// Neighbours on the machine: processes outside of containers that take CPUs, and a second plugin.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CpuSet } from 'numalign';
import { ALL, allCpusBut, EXCLUSIVE, until, useNodeFixture } from './support/node-fixture.mjs';

const NEIGHBOUR = fileURLToPath(new URL('support/neighbour.mjs', import.meta.url));
const TIMES = 5;

describe('CPUs of a process outside of containers', () => {
  const fixture = useNodeFixture();

  function startNeighbour() {
    const child = spawn(process.execPath, [NEIGHBOUR, fixture.stateDir], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return {
      async do(verb) {
        child.stdin.write(`${verb}\n`);
        return JSON.parse((await answers.next()).value);
      },
      async end() {
        child.stdin.end();
        await once(child, 'exit');
      },
    };
  }

  // As often as the event loop turns: the node runs in this process.
  async function whenHas(folder, cpus) {
    const deadline = Date.now() + 10_000;
    while (readFileSync(join(folder, 'cpuset.cpus'), 'utf8').trim() !== cpus) {
      assert.ok(Date.now() < deadline, `the container does not get CPUs ${cpus}`);
      await turn();
    }
    return Date.now();
  }

  it('are left by shared containers, which come back when they are free', async (t) => {
    await fixture.startNode();
    const shared = await fixture.pods.runPod('shared');
    const folder = await shared.cpusetFolder();
    const neighbour = startNeighbour();
    const times = { acquire: [], release: [] };
    for (let i = 0; i < TIMES; i++) {
      const taken = await neighbour.do('acquire');
      times.acquire.push((await whenHas(folder, allCpusBut(taken.cpus))) - taken.at);
      const freed = await neighbour.do('release');
      times.release.push((await whenHas(folder, ALL.cpus)) - freed.at);
    }
    await neighbour.end();
    for (const [verb, ms] of Object.entries(times))
      t.diagnostic(
        `shared containers follow ${verb} within ${ms.map((each) => Math.max(each, 0)).join(', ')} ms`,
      );
    // The runtime still has the old value, until its next call.
    await shared.update({ cpu_period: 100_000, cpu_quota: 50_000 });
    assert.equal((await shared.allowed()).cpus, ALL.cpus);
  });

  it('are left even by a container that was created before, and starts afterwards', async () => {
    await fixture.startNode();
    const shared = await fixture.pods.createPod('waiting');
    const neighbour = startNeighbour();
    const taken = await neighbour.do('acquire');
    await shared.start();
    assert.equal((await shared.seen()).cpus, allCpusBut(taken.cpus));
    await neighbour.end();
  });

  it('are not granted to a container', async () => {
    await fixture.startNode();
    const neighbour = startNeighbour();
    const taken = await neighbour.do('acquire');
    await assert.rejects(fixture.pods.runPod('exclusive', EXCLUSIVE), { message: /shared pool|requested/ });
    const shared = await fixture.pods.runPod('shared');
    assert.equal((await shared.seen()).cpus, allCpusBut(taken.cpus));
    await neighbour.end();
    await until('they are free', async () => (await shared.allowed()).cpus === ALL.cpus);
  });
});

describe('A plugin of another name', () => {
  const fixture = useNodeFixture();

  it('leaves the grants of the first alone', async () => {
    const { manager } = await fixture.startNode({ name: 'first' });
    const pod = await fixture.pods.runPod('exclusive', EXCLUSIVE);
    const { cpus } = await pod.allowed();
    const { node } = await fixture.startNode({ name: 'second' });
    assert.equal(CpuSet.parse(cpus).size, 1);
    assert.deepEqual(
      manager.grants().map(({ uid, name }) => [uid, name]),
      [[pod.containerId, 'first:default/exclusive/main']],
    );
    assert.equal((await pod.allowed()).cpus, cpus);
    await node.close();
    assert.equal(manager.grants().length, 1);
  });

  it('keeps containers from being created, and is named', async () => {
    await fixture.startNode({ name: 'first' });
    const second = await fixture.startProcess({ name: 'second' });
    await assert.rejects(fixture.pods.runPod('exclusive', EXCLUSIVE), {
      message: /plugins "90-\w+" and "90-\w+" both tried to set/,
    });
    await until('the log names it', () =>
      fixture.lines.some((line) => line.includes(`did not create`) && line.includes(`pid ${second.pid}`)),
    );
  });
});
