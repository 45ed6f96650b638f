// needs: nothing
import { beforeAll, describe, expect, it } from 'vitest';
import { discover, type Topology } from '../../../lib/entries/topology.js';
import { packets } from '../../../lib/quiet/parts/packets.js';
import { errorOf } from '../../support/error-of.js';
import { kernelTree } from '../../support/kernel-tree.js';
import { demandOf, quiet, restore, write } from '../../support/quiet.js';

const QUEUES = '/sys/class/net/eth0/queues';
const CORE = '/proc/sys/net/core';
const DEFAULT = `${CORE}/rps_default_mask`;

let machine: Topology;
beforeAll(async () => {
  machine = await discover({ synthetic: 'numa:1 core:4 pu:1' });
});

const demand = (cpus = '2') => demandOf(machine, quiet(cpus));
const settingsOf = (files: Parameters<typeof packets.settings>[0]) => [
  ...packets.settings(files, demand(), []),
];

const tree = (more: Record<string, string> = {}) =>
  kernelTree({
    [DEFAULT]: 'f',
    [`${QUEUES}/rx-0/rps_cpus`]: 'c',
    [`${QUEUES}/rx-0/rps_flow_cnt`]: '0',
    [`${QUEUES}/rx-1/rps_cpus`]: '00000000',
    [`${QUEUES}/tx-0/xps_cpus`]: '5',
    [`${QUEUES}/tx-1/byte_queue_limits/limit`]: '0',
    ...more,
  });

describe('the masks of network queues', () => {
  it('lose quiet CPUs, the default of new devices first, and get them back', async () => {
    const files = tree();
    const before = new Map(files.texts);
    const changes = await write(settingsOf(files), demand());
    expect(files.writes).toEqual([DEFAULT, `${QUEUES}/rx-0/rps_cpus`, `${QUEUES}/tx-0/xps_cpus`]);
    expect(files.writes.map((path) => files.texts.get(path))).toEqual(['b', '8', '1']);
    await restore(changes);
    expect(files.texts).toEqual(before);
  });

  it('stay off if they are off', () => {
    const rps = settingsOf(tree()).find(({ path }) => path.endsWith('rx-1/rps_cpus'))!;
    expect(rps.target(rps.read() as string, demand())).toBe(rps.read());
  });

  it('are housekeeping CPUs if they had only quiet ones, since 0 would turn them off', () => {
    const rps = settingsOf(tree()).find(({ path }) => path.endsWith('rx-0/rps_cpus'))!;
    expect(rps.target('4', demand())).toBe('b');
  });

  it('have the names of their devices and queues', () => {
    expect(settingsOf(tree()).map(({ title }) => title)).toEqual([
      'RPS of new devices',
      'rps_cpus of eth0 rx-0',
      'rps_cpus of eth0 rx-1',
      'xps_cpus of eth0 tx-0',
    ]);
  });

  it.each(['EINVAL', 'EOPNOTSUPP'])('are missing if a device with one queue answers %s', (code) => {
    const path = `${QUEUES}/tx-0/xps_cpus`;
    const files = kernelTree({ [path]: '' }, {}, { [path]: code });
    expect(settingsOf(files)[0]!.read()).toBeUndefined();
  });

  it('end with the error of the kernel if they may not be read', async () => {
    const path = `${QUEUES}/rx-0/rps_cpus`;
    const files = kernelTree({ [path]: '' }, {}, { [path]: 'EACCES' });
    expect(await errorOf(() => settingsOf(files)[0]!.read())).toMatchObject({ code: 'EACCES' });
  });
});

describe('an obstacle to quiet packets', () => {
  const obstacles = (more: Record<string, string>) => packets.obstacles(tree(more), demand());

  it('is RFS, which has no mask, if sockets have entries and a queue has flows', () => {
    const on = { [`${CORE}/rps_sock_flow_entries`]: '32768', [`${QUEUES}/rx-0/rps_flow_cnt`]: '2048' };
    expect(obstacles(on)).toEqual([expect.stringMatching(/^RFS is on \(eth0\).*rps_sock_flow_entries=0/)]);
  });

  it('is not RFS with only entries, or only flows', () => {
    expect(obstacles({ [`${CORE}/rps_sock_flow_entries`]: '32768' })).toEqual([]);
    expect(obstacles({ [`${QUEUES}/rx-0/rps_flow_cnt`]: '2048' })).toEqual([]);
  });

  it('is a container that sees no device', () => {
    expect(packets.obstacles(kernelTree({}), demand())).toEqual([expect.stringMatching(/shows no device/)]);
  });
});

describe('the masks of another network namespace', () => {
  const NAMESPACE = '/proc/self/ns/net';
  const recorded = (identity: string) => ({
    ...{ part: 'packets' as const, path: `${QUEUES}/rx-0/rps_cpus`, identity, original: 'f' },
    ...{ written: ['b'], refusal: null, isLeftover: false },
  });

  it('are other settings even with the same paths', () => {
    const files = tree({ [NAMESPACE]: 'net:[2]' });
    expect(settingsOf(files).map(({ identity }) => identity)).toEqual(Array(4).fill('net:[2]'));
  });

  it('stay on record, unlike removed ones of this namespace', () => {
    const files = tree({ [NAMESPACE]: 'net:[2]' });
    const [host, container] = [recorded('net:[1]'), recorded('net:[2]')];
    expect(packets.hidden(files, [host, container])).toEqual([host]);
  });

  it('stay on record together with those of this namespace if no device is visible', () => {
    const record = recorded('net:[2]');
    expect(packets.hidden(kernelTree({ [NAMESPACE]: 'net:[2]' }), [record])).toEqual([record]);
  });
});
