// Containers whose cpuset another program writes.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { CpusetFiles } from '../../lib/cgroups/cpuset-files.js';
import { containerOf, podOf } from '../support/nri-objects.js';
import { cpusByContainer, type SimulatedNode, simulatedNode } from '../support/simulated-node.js';

const POD = podOf();
const EXCLUSIVE = containerOf({ id: 'own', cpus: 2, memory: 2 ** 20 });
const SHARED = containerOf({ id: 'shared' });

/** A node with a container of each kind, as they run. */
async function running() {
  const node = await simulatedNode();
  for (const container of [SHARED, EXCLUSIVE]) {
    await node.handlers.createContainer(POD, container);
    node.makeCgroup(pathOf(container), container === EXCLUSIVE ? '0-1' : '2-7');
    await node.handlers.startContainer(POD, container);
  }
  return node;
}

const pathOf = (container: typeof EXCLUSIVE) => container.linux!.cgroups_path;

function write({ cgroups }: SimulatedNode, container: typeof EXCLUSIVE, file: string, text: string) {
  writeFileSync(join(cgroups, pathOf(container), file), text);
}

const drifts = ({ lines }: SimulatedNode) => lines.filter((line) => line.includes('another program'));

afterEach(() => {
  vi.useRealTimers();
});

describe('A container that another program moves', () => {
  it('is put back on its exclusive CPUs, and the runtime and the log are told', async () => {
    const node = await running();
    write(node, EXCLUSIVE, 'cpuset.cpus', '0-7');
    await expect.poll(() => node.cpusOf(pathOf(EXCLUSIVE))).toBe('0-1');
    expect(node.handlers.repairs).toBe(1);
    expect(drifts(node)).toEqual([
      'warn: another program has put numalign:default/web/main on CPUs 0-7: it is back on 0-1',
    ]);
    await expect
      .poll(() => node.told)
      .toMatchObject([{ container_id: 'own', linux: { resources: { cpu: { cpus: '0-1' } } } }]);
  });

  it('is put back in the shared pool, and the runtime is told where that is by then', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const node = await running();
    write(node, SHARED, 'cpuset.cpus', '0-7');
    await vi.waitUntil(() => node.handlers.repairs === 1, { interval: 1, timeout: 20_000 });
    expect([node.cpusOf(pathOf(SHARED)), node.told]).toEqual(['2-7', []]);
    await node.manager.adopt({ uid: 'x', name: 'x', containers: [{ name: 'main', cpus: '7' }] });
    await vi.waitUntil(() => node.cpusOf(pathOf(SHARED)) === '2-6', { interval: 1, timeout: 20_000 });
    await vi.advanceTimersByTimeAsync(1000);
    expect(cpusByContainer(node.told)).toEqual({ shared: '2-6' });
  });

  it('has its memory nodes back if someone has emptied them', async () => {
    const node = await running();
    write(node, EXCLUSIVE, 'cpuset.mems', '\n');
    await expect.poll(() => drifts(node)).toHaveLength(1);
    expect(drifts(node)[0]).toContain('on memory of all NUMA nodes: it is back');
    expect(readFileSync(join(node.cgroups, pathOf(EXCLUSIVE), 'cpuset.mems'), 'utf8')).toBe('0');
  });

  it('has its memory nodes back, too', async () => {
    const node = await running();
    write(node, EXCLUSIVE, 'cpuset.mems', '1');
    await expect.poll(() => drifts(node)).toHaveLength(1);
    expect(drifts(node)[0]).toContain('on memory of NUMA nodes 1: it is back');
  });

  it('is left alone by what numalign writes itself', async () => {
    const node = await running();
    await node.manager.adopt({ uid: 'x', name: 'x', containers: [{ name: 'main', cpus: '7' }] });
    await expect.poll(() => node.cpusOf(pathOf(SHARED))).toBe('2-6');
    write(node, SHARED, 'cpuset.cpus', '2');
    await expect.poll(() => node.cpusOf(pathOf(SHARED))).toBe('2-6');
    expect(node.handlers.repairs).toBe(1);
  });

  it('is not put back to where it was created if the pool changed before it started', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const node = await simulatedNode();
    await node.handlers.createContainer(POD, SHARED);
    await node.manager.adopt({ uid: 'x', name: 'x', containers: [{ name: 'main', cpus: '7' }] });
    node.makeCgroup(pathOf(SHARED), '0-7');
    await node.handlers.startContainer(POD, SHARED);
    await vi.advanceTimersByTimeAsync(10_000);
    expect([node.cpusOf(pathOf(SHARED)), node.handlers.repairs]).toEqual(['0-6', 0]);
  });

  it('is not fought over without end, but looked at again in the next round', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const node = await running();
    for (let n = 1; n <= 10; n++) {
      write(node, EXCLUSIVE, 'cpuset.cpus', '0-7');
      await vi.waitUntil(() => node.handlers.repairs === n, { interval: 1, timeout: 20_000 });
    }
    write(node, EXCLUSIVE, 'cpuset.cpus', '0-7');
    await new Promise((resolve) => setImmediate(resolve));
    expect(node.cpusOf(pathOf(EXCLUSIVE))).toBe('0-7');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(node.cpusOf(pathOf(EXCLUSIVE))).toBe('0-1');
  });

  it('is found where that happened while no plugin ran', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const node = await running();
    node.handlers.close();
    write(node, EXCLUSIVE, 'cpuset.cpus', '0-7');
    const handlers = node.restart();
    await handlers.synchronize([POD], [{ ...EXCLUSIVE, state: 3 }]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(node.cpusOf(pathOf(EXCLUSIVE))).toBe('0-1');
  });

  it('is not followed any more once it has ended', async () => {
    const node = await running();
    await node.handlers.stopContainer(POD, EXCLUSIVE);
    mkdirSync(join(node.cgroups, pathOf(EXCLUSIVE)), { recursive: true });
    write(node, EXCLUSIVE, 'cpuset.cpus', '3');
    write(node, SHARED, 'cpuset.cpus', '3');
    await expect.poll(() => node.cpusOf(pathOf(SHARED))).toBe('0-7');
    expect(node.cpusOf(pathOf(EXCLUSIVE))).toBe('3');
  });
});

describe('A grant that another program', () => {
  it('releases binds its container no longer, which runs in the shared pool', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const node = await running();
    await node.manager.release('own');
    await vi.waitUntil(() => node.cpusOf(pathOf(EXCLUSIVE)) === '0-7', { interval: 1, timeout: 20_000 });
    expect(node.lines).toContain(
      'warn: the grant of numalign:default/web/main was changed or released: it runs in the shared pool',
    );
    write(node, EXCLUSIVE, 'cpuset.mems', '1');
    await node.manager.adopt({ uid: 'x', name: 'x', containers: [{ name: 'main', cpus: '0-1' }] });
    await vi.waitUntil(() => node.cpusOf(pathOf(EXCLUSIVE)) === '2-7', { interval: 1, timeout: 20_000 });
    await vi.advanceTimersByTimeAsync(10_000);
    expect(readFileSync(join(node.cgroups, pathOf(EXCLUSIVE), 'cpuset.mems'), 'utf8')).toBe('1');
    expect(node.handlers.repairs).toBe(0);
  });

  it('releases is made again by the next numalign-node, and by no other', async () => {
    const node = await running();
    await node.manager.release('own');
    await expect.poll(() => node.cpusOf(pathOf(EXCLUSIVE))).toBe('0-7');
    expect(node.manager.grants()).toEqual([]);
    await node.restart().synchronize([POD], [EXCLUSIVE, SHARED]);
    expect(node.manager.grants().map(({ uid }) => uid)).toEqual(['own']);
  });

  it('resizes has its container on the CPUs that it has now', async () => {
    const node = await running();
    await node.manager.grant('own').resize({ cpu: 3, noticeMs: 0 });
    await expect.poll(() => node.cpusOf(pathOf(EXCLUSIVE))).toBe('0-2');
    await expect.poll(() => node.cpusOf(pathOf(SHARED))).toBe('3-7');
    await expect.poll(() => cpusByContainer(node.told)).toEqual({ own: '0-2' });
    expect(node.handlers.repairs).toBe(0);
  });

  it('is not noticed of what an update of the container does', async () => {
    const node = await running();
    const resources = containerOf({ id: 'own', cpus: 3, memory: 2 ** 20 }).linux!.resources!;
    await node.handlers.updateContainer(POD, EXCLUSIVE, resources);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(node.lines.filter((line) => line.includes('changed or released'))).toEqual([]);
  });
});

describe('The runtime hears of a shared container', () => {
  const scope = (id: string) => {
    const container = containerOf({ id });
    return { ...container, linux: { ...container.linux!, cgroups_path: `k.slice:cri-containerd:${id}` } };
  };

  it('if numalign may not write its cgroup, at once', async () => {
    const node = await running();
    vi.spyOn(CpusetFiles.prototype, 'write').mockReturnValue('EROFS');
    onTestFinished(() => void vi.restoreAllMocks());
    await node.manager.adopt({ uid: 'x', name: 'x', containers: [{ name: 'main', cpus: '7' }] });
    await expect.poll(() => cpusByContainer(node.told)).toEqual({ shared: '2-6' });
    expect(node.lines.filter((line) => line.includes('stays on'))).toEqual([]);
  });

  it('if systemd made its cgroup, and not otherwise', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const node = await simulatedNode();
    for (const [container, path] of [
      [SHARED, pathOf(SHARED)],
      [scope('of-systemd'), '/k.slice/cri-containerd-of-systemd.scope'],
    ] as const) {
      await node.handlers.createContainer(POD, container);
      node.makeCgroup(path, '0-7');
      await node.handlers.startContainer(POD, container);
    }
    await node.manager.adopt({ uid: 'x', name: 'x', containers: [{ name: 'main', cpus: '7' }] });
    await vi.waitUntil(() => node.cpusOf(pathOf(SHARED)) === '0-6', { interval: 1, timeout: 20_000 });
    await vi.advanceTimersByTimeAsync(1000);
    expect(cpusByContainer(node.told)).toEqual({ 'of-systemd': '0-6' });
  });
});

describe('The runtime hears of a container whose grant was moved', () => {
  const resized = async (error: string) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const node = await running();
    const write = vi.spyOn(CpusetFiles.prototype, 'write').mockReturnValue(error);
    onTestFinished(() => void vi.restoreAllMocks());
    await node.manager.grant('own').resize({ cpu: 3, noticeMs: 0 });
    const isWritten = () => write.mock.calls.some(([, cpus]) => `${cpus}` === '0-2');
    await vi.waitUntil(isWritten, { interval: 1, timeout: 20_000 });
    await vi.advanceTimersByTimeAsync(1);
    return node;
  };
  const warnings = ({ lines }: SimulatedNode) => lines.filter((line) => line.includes('only the runtime'));
  const ownOf = ({ told }: SimulatedNode) => cpusByContainer(told).own;

  it.each(['EROFS', 'EBUSY', 'the kernel has CPUs 0-1'])(
    'at once if numalign cannot write its cgroup: %s',
    async (error) => {
      const node = await resized(error);
      expect(ownOf(node)).toBe('0-2');
      expect(warnings(node)).toEqual([
        `warn: only the runtime can move numalign:default/web/main from CPUs 0-1 to 0-2: ${error}`,
      ]);
    },
  );

  it('after a while if it has no cgroup yet', async () => {
    const node = await resized('ENOENT');
    expect([ownOf(node), warnings(node)]).toEqual([undefined, []]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(ownOf(node)).toBe('0-2');
  });
});
