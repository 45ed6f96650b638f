// needs: nothing
import { inspect } from 'node:util';
import { expect, it } from 'vitest';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, NodeSet, openManager } from '../../lib/index.js';

it('shows sets in Linux’s form', () => {
  expect(inspect([CpuSet.parse('0-3,8'), NodeSet.of(0, 2)])).toBe('[ CpuSet(0-3,8), NodeSet(0,2) ]');
  expect(inspect({ a: { b: { c: CpuSet.of(1) } } }, { depth: 2 })).toBe(
    '{\n  a: { b: { c: CpuSet(1) } }\n}'.replace(/\n\s*/g, ' '),
  );
});

it('shows the resources of grants, pods and managers, even after their end', async () => {
  const manager = await openManager({ topology: await discover({ synthetic: 'numa:2 core:2 pu:2' }) });
  const grant = await manager.acquire({ cpu: 2, name: 'gateway' });
  const containers = [{ name: 'main', limits: { cpu: 1, memory: '1Mi' } }];
  const pod = await manager.admit({ name: 'job', containers });
  expect(inspect(grant)).toMatch(/^Grant \{\n {2}uid: '.*',\n {2}name: 'gateway',\n {2}cpus: CpuSet\(0-1\),/);
  expect(inspect(pod)).toMatch(/^Pod \{\n {2}uid: '.*',\n {2}name: 'job',/);
  expect(inspect(manager)).toMatch(
    /^Manager \{ id: \d+, scope: 'memory', stateDir: '', cpus: CpuSet\(0-7\) \}$/,
  );
  await grant.release();
  await pod.release();
  expect(inspect(grant)).toContain("name: 'gateway'");
  manager.close();
  expect(inspect(grant)).toContain("name: 'gateway'");
  expect(inspect(pod)).toContain("name: 'job'");
  expect(inspect(manager)).toContain("scope: 'memory'");
});
