import { once } from 'node:events';
import { existsSync, linkSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { DevicePlugin } from '../../lib/device-plugin/device-plugin.js';
import { PluggedMachine } from './plugged-machine.js';

// Two NUMA nodes of two cores with two threads each: CPUs 0-3 and 4-7.
const TWO_NODES = 'package:2 numa:1 core:2 pu:2';

let machine: PluggedMachine;
afterEach(() => machine?.close());

async function start(...args: Parameters<typeof PluggedMachine.open> | []): Promise<void> {
  machine = await PluggedMachine.open(...((args.length === 0 ? [TWO_NODES] : args) as [string]));
  await machine.kubelet.start();
  await machine.plugin.start();
  await expect.poll(() => machine.kubelet.devices).toBeDefined();
}

const healthy = () => machine.kubelet.healthy?.join(' ');

describe('A device plugin', () => {
  it('registers its resource, and says that it has a preference', async () => {
    await start();
    expect(machine.kubelet.registrations).toEqual([
      {
        ...{ version: 'v1beta1', resource_name: 'numalign.io/cpu' },
        endpoint: expect.stringMatching(/^numalign-numalign\.io-cpu-[0-9a-f]+\.sock$/),
        options: { pre_start_required: false, get_preferred_allocation_available: true },
      },
    ]);
    expect(await machine.kubelet.call('GetDevicePluginOptions', {})).toEqual({
      ...{ pre_start_required: false, get_preferred_allocation_available: true },
    });
  });

  it('offers managed, unreserved CPUs with their NUMA nodes', async () => {
    await start(TWO_NODES, { machine: { managedCPUs: '0-6' } });
    expect(Object.fromEntries([...machine.kubelet.devices!].map(([id, { nodes }]) => [id, nodes]))).toEqual({
      ...{ cpu1: [0], cpu2: [0], cpu3: [0], cpu4: [1], cpu5: [1], cpu6: [1] },
    });
    expect(healthy()).toBe('cpu1 cpu2 cpu3 cpu4 cpu5 cpu6');
  });

  it('offers cores with all their threads', async () => {
    await start(TWO_NODES, { unit: 'core' });
    expect(machine.plugin.resource).toBe('numalign.io/core');
    expect(healthy()).toBe('core2 core4 core6');
    const { NUMALIGN_CPUS } = await machine.kubelet.allocate('core4', 'core6');
    expect(NUMALIGN_CPUS).toBe('4-7');
  });

  it('does not offer isolated CPUs', async () => {
    await start(TWO_NODES, { machine: { isolatedCPUs: '6-7' } });
    expect(healthy()).toBe('cpu1 cpu2 cpu3 cpu4 cpu5');
  });

  it('waits for a later kubelet', async () => {
    machine = await PluggedMachine.open(TWO_NODES);
    await machine.plugin.start();
    await machine.kubelet.start();
    await expect.poll(healthy).toContain('cpu7');
  });

  it('registers again with a kubelet that has been started again', async () => {
    await start();
    for (let i = 0; i < 3; i++) {
      machine.kubelet.kill();
      await machine.kubelet.start();
      await expect.poll(healthy).toContain('cpu7');
    }
    expect(machine.kubelet.registrations.length).toBe(4);
    expect(readdirSync(machine.kubelet.folder).length).toBe(2);
  });

  it('registers again if its folder was removed and is made again', async () => {
    await start();
    machine.kubelet.kill();
    rmSync(machine.kubelet.folder, { recursive: true });
    await machine.kubelet.start();
    await expect.poll(healthy).toContain('cpu7');
  });

  it('serves on another socket if its own was removed', async () => {
    await start();
    const [{ endpoint }] = machine.kubelet.registrations as [{ endpoint: string }];
    rmSync(join(machine.kubelet.folder, endpoint));
    await expect.poll(() => machine.kubelet.registrations.length).toBe(2);
    await expect.poll(healthy).toContain('cpu7');
    expect(machine.kubelet.registrations[1]!.endpoint).not.toBe(endpoint);
  });

  it('registers again, after a while, with a kubelet that ends the stream and keeps running', async () => {
    await start(TWO_NODES, { returnMs: 10 });
    machine.kubelet.forget();
    await expect.poll(healthy).toContain('cpu7');
    expect(machine.messages.join()).toContain('the kubelet has ended the stream of numalign.io/cpu');
  });

  it('says that it was refused, and asks the next kubelet', async () => {
    machine = await PluggedMachine.open(TWO_NODES);
    await machine.kubelet.start();
    machine.kubelet.admit = () => {
      throw new Error('unsupported version');
    };
    await machine.plugin.start();
    await expect.poll(() => machine.messages.join()).toMatch(/cannot be registered: .*unsupported version/);
    machine.kubelet.kill();
    machine.kubelet.admit = () => {};
    await machine.kubelet.start();
    await expect.poll(healthy).toContain('cpu7');
  });

  it('gives the reason if a kubelet has registered it and never asks for devices', async () => {
    machine = await PluggedMachine.open(TWO_NODES);
    machine.kubelet.isReading = false;
    await machine.kubelet.start();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      await machine.plugin.start();
      await expect.poll(() => machine.messages.join()).toContain('is registered');
      expect(machine.messages.join()).not.toContain(':authority');
      vi.advanceTimersByTime(10_000);
      expect(machine.messages.join()).toContain(':authority');
    } finally {
      vi.useRealTimers();
    }
  });

  it('is refused by a kubelet that sends a path as :authority, and serves the others', async () => {
    await start();
    const [{ endpoint }] = machine.kubelet.registrations as [{ endpoint: string }];
    const path = join(machine.kubelet.folder, endpoint);
    const session = connectHttp2('http://localhost', { createConnection: () => connect(path) });
    const stream = session.request({
      ...{ ':method': 'POST', ':path': '/v1beta1.DevicePlugin/ListAndWatch', ':authority': path },
      ...{ 'content-type': 'application/grpc', te: 'trailers' },
    });
    await expect(once(stream, 'response')).rejects.toThrow('NGHTTP2_PROTOCOL_ERROR');
    session.destroy();
    expect((await machine.kubelet.allocate('cpu1')).NUMALIGN_CPUS).toBe('1');
  });

  it('keeps serving if a peer writes garbage', async () => {
    await start();
    const [{ endpoint }] = machine.kubelet.registrations as [{ endpoint: string }];
    const path = join(machine.kubelet.folder, endpoint);
    for (const bytes of ['', 'GET / HTTP/1.1\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0'.repeat(99)]) {
      const socket = connect(path);
      socket.on('error', () => {});
      socket.end(bytes);
      socket.resume();
      await once(socket, 'close');
    }
    await expect(
      machine.kubelet.call('Allocate', { container_requests: Array(1000).fill({ devicesIDs: ['x'] }) }),
    ).rejects.toMatchObject({ details: expect.stringContaining('ERR_UNKNOWN_DEVICE') });
    expect((await machine.kubelet.allocate('cpu1')).NUMALIGN_CPUS).toBe('1');
  });

  it('is closed while a kubelet does not answer its registration', async () => {
    machine = await PluggedMachine.open(TWO_NODES);
    await machine.kubelet.start();
    let isAsked = false;
    machine.kubelet.admit = () => {
      isAsked = true;
      return new Promise(() => {});
    };
    await machine.plugin.start();
    await expect.poll(() => isAsked).toBe(true);
    await machine.plugin.close();
    expect(readdirSync(machine.kubelet.folder)).toEqual(['kubelet.sock']);
  });

  it('warns if the last shared CPU is among the devices', async () => {
    machine = await PluggedMachine.open(TWO_NODES, { machine: { reservedSystemCPUs: '' } });
    await machine.plugin.start();
    expect(machine.messages.join()).toContain('set reservedSystemCPUs');
    await machine.plugin.close();
    await machine.manager.configure({ reservedSystemCPUs: '0' });
    machine.messages.length = 0;
    await machine.plug().start();
    expect(machine.messages.join()).not.toContain('reservedSystemCPUs');
  });

  it('leaves no socket and no listener behind', async () => {
    await start();
    await machine.plugin.close();
    expect(readdirSync(machine.kubelet.folder)).toEqual(['kubelet.sock']);
    expect(machine.manager.listenerCount('change')).toBe(0);
  });

  it('removes sockets of its ended processes, and no others', async () => {
    machine = await PluggedMachine.open(TWO_NODES);
    await machine.kubelet.start();
    const { folder } = machine.kubelet;
    const left = join(folder, 'numalign-numalign.io-cpu-00.sock');
    const alive = join(folder, 'numalign-numalign.io-cpu-01.sock');
    // The socket of a process that was killed has no listener.
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(`${left}x`, resolve));
    linkSync(`${left}x`, left);
    await new Promise((resolve) => server.close(resolve));
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(alive, resolve));
    writeFileSync(join(folder, 'vendor.sock'), '');
    await machine.plugin.start();
    expect(existsSync(left)).toBe(false);
    expect(existsSync(alive)).toBe(true);
    expect(existsSync(join(folder, 'vendor.sock'))).toBe(true);
    other.close();
  });

  it('refuses invalid options', async () => {
    machine = await PluggedMachine.open(TWO_NODES);
    const make = (options: object) => () => machine.plug(options);
    const [before] = [machine.plugin];
    for (const options of [
      { unit: 'socket' },
      { resource: 'cpu' },
      { resource: 'numalign.io/cpu\n' },
      { folder: 'device-plugins' },
      { patienceMs: -1 },
      { returnMs: Number.NaN },
    ]) {
      expect(make(options)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }));
    }
    machine.plugin = before;
  });

  it('refuses a folder whose path is too long for a socket', async () => {
    machine = await PluggedMachine.open(TWO_NODES);
    const folder = join(machine.root, 'x'.repeat(90));
    mkdirSync(folder);
    const plugin = new DevicePlugin({ manager: machine.manager, folder, log: () => {} });
    await expect(plugin.start()).rejects.toMatchObject({ code: 'ERR_SOCKET_PATH' });
    expect(machine.manager.listenerCount('change')).toBe(0);
  });
});

describe('The list of devices', () => {
  it('marks a CPU as unhealthy while another process’s grant has it', async () => {
    await start();
    const grant = await machine.manager.acquire({ cpu: 2 });
    await expect.poll(() => machine.kubelet.healthy?.length).toBe(5);
    expect(machine.kubelet.devices!.size).toBe(7);
    const ids = [...grant.cpus].map((cpu) => `cpu${cpu}`);
    expect(ids.map((id) => machine.kubelet.devices!.get(id)!.health)).toEqual(['Unhealthy', 'Unhealthy']);
    await grant.release();
    await expect.poll(() => machine.kubelet.healthy?.length).toBe(7);
  });

  it('marks a CPU that the kubelet has allocated as healthy', async () => {
    await start();
    await machine.kubelet.allocate('cpu1', 'cpu2');
    await machine.manager.acquire({ cpu: 1 });
    await expect.poll(() => machine.kubelet.healthy?.length).toBe(6);
    expect(healthy()).toContain('cpu1 cpu2');
  });

  it('is not sent without a change', async () => {
    await start();
    await machine.kubelet.allocate('cpu1');
    await machine.kubelet.allocate('cpu2');
    await (await machine.manager.acquire({ cpu: 1 })).release();
    await machine.manager.acquire({ cpu: 1 });
    await expect.poll(() => machine.kubelet.healthy?.length).toBe(6);
    expect(machine.kubelet.lists).toBeLessThanOrEqual(4);
  });

  it('keeps a CPU that is no longer managed, as unhealthy', async () => {
    await start();
    await machine.manager.configure({ managedCPUs: '0-5' });
    await expect.poll(healthy).toBe('cpu1 cpu2 cpu3 cpu4 cpu5');
    expect([...machine.kubelet.devices!.keys()]).toContain('cpu7');
  });
});
