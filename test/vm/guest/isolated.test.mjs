// Isolated CPUs of a kernel that was started with isolcpus= or nohz_full=, or with neither: at
// least 16 CPUs, root. Run by node --test.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { affinity } from '../../../dist-test/lib/entries/diagnostics.js';
import { CpuSet, openManager, pin } from '../../../dist-test/lib/index.js';
import { kernelCpus, unbalancedCpus } from '../../../dist-test/lib/machine/isolated-cpus.js';

const commandLine = readFileSync('/proc/cmdline', 'utf8');
const argument = (name) => CpuSet.parse(new RegExp(`(?:^| )${name}=([0-9,-]+)`).exec(commandLine)?.[1] ?? '');
const [isolcpus, nohzFull] = [argument('isolcpus'), argument('nohz_full')];
const isolated = isolcpus.union(nohzFull);
// The initial CPUs of every process. Before Linux 6.2 partitions of earlier tests may have given it
// all CPUs.
pin(affinity().difference(isolated));

async function open(options = {}) {
  return openManager({ stateDir: join(mkdtempSync(join(tmpdir(), 'numalign-test-')), 'state'), ...options });
}

test(`the kernel isolates the CPUs of its command line: ${isolated}`, () => {
  assert.deepEqual(unbalancedCpus(), isolcpus);
  assert.deepEqual(kernelCpus().isolated, isolated);
  for (let cpu = 0; cpu < 16; cpu++) assert.equal(unbalancedCpus().has(cpu), isolcpus.has(cpu));
});

test('they are a pool of their own, and grants of them are pinned to them', async () => {
  const manager = await open();
  const { cpus } = manager.topology;
  assert.deepEqual(manager.settings().isolatedCPUs, isolated);
  assert.deepEqual(manager.sharedPool(), cpus.difference(isolated));
  assert.deepEqual(manager.freeIsolatedCpus(), isolated);
  if (isolated.isEmpty) {
    await assert.rejects(manager.acquire({ cpu: 1, isolation: 'require', policy: 'none' }), {
      code: 'ERR_INSUFFICIENT_CPUS',
    });
    manager.close();
    return;
  }
  const grant = await manager.acquire({ cpu: 1, isolation: 'prefer' });
  assert.ok(grant.isIsolated && grant.cpus.isSubsetOf(isolated));
  assert.deepEqual(grant.flags(), []);
  grant.pin();
  assert.deepEqual(affinity(), grant.cpus);
  await grant.release();
  assert.ok(affinity().isSubsetOf(manager.sharedPool()));
  manager.close();
});

test('they are like others if the settings say so, and a grant of them says that the kernel balances no load', async () => {
  const manager = await open({ isolatedCPUs: '', managedCPUs: '10-15' });
  const grant = await manager.acquire({ cpu: 5 });
  assert.equal(grant.isIsolated, grant.cpus.intersects(isolcpus));
  assert.equal(manager.grants()[0].isIsolated, grant.isIsolated);
  await grant.release();
  manager.close();
});
