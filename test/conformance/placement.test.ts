// needs: nothing
import { describe, expect, it } from 'vitest';
import { withDevices } from './devices.js';
import { capacitiesOf, tablesOf } from './memory.js';
import { flawOf, type Holding, type Holdings, type Placement, type Rules } from './placement.js';
import { claimsOf, wholeOf } from './pod.js';
import type { RecordedHoldings } from './recorded-node.js';

const gpu = 'example.com/gpu';
const nodes = [0, 1].map((id) => ({
  id,
  memory: 1000 + 2 * 2048,
  hugepages: [{ sizeKiB: 2, count: 2 }],
  reserved: { memory: 100 },
}));
const capacities = capacitiesOf(nodes);
const inventory = new Map([
  [
    gpu,
    new Map([
      ['a', [0]],
      ['b', [0]],
      ['c', [1]],
      ['d', null],
    ]),
  ],
]);

const container = (name: string, memory: number, gpus: number, hugepages = 0) => {
  const amounts = { cpu: 500, memory, [gpu]: gpus, ...(hugepages > 0 && { 'hugepages-2Ki': hugepages }) };
  return { name, requests: amounts, limits: amounts };
};
const policies = { cpuPolicy: 'static', memoryPolicy: 'Static' } as const;
const web = {
  uid: 'web',
  initContainers: [container('init', 300, 1)],
  containers: [container('app', 400, 2, 4096)],
};
const side = {
  uid: 'side',
  initContainers: [{ ...container('proxy', 50, 1), restartPolicy: 'Always' }],
  containers: [container('app', 50, 1)],
};
const one = { uid: 'one', initContainers: [], containers: [container('app', 50, 1)] };
const big = { uid: 'big', initContainers: [], containers: [container('app', 950, 0)] };
const claims = new Map([web, side, one, big].map((pod) => [pod.uid, claimsOf(pod, policies)]));

const rules: Rules = {
  machine: {
    columns: ['cpu', 'core', 'socket', 'numa'],
    cpus: [[0, 0, 0, 0]],
    nodes: [],
  } as unknown as Rules['machine'],
  reserved: new Set(),
  isStrict: false,
  claims,
  wholes: new Map(),
  withoutDevices: new Set(),
  topologyPolicy: 'best-effort',
  capacities,
  inventory,
};

const hint = { nodes: null, preferred: false };
const block = (on: number[], bytes: number, type = 'memory') => ({ nodes: on, type, bytes });
const devices = (...ids: string[]) => ({
  [gpu]: ids.map((id) => ({ id, nodes: inventory.get(gpu)!.get(id) ?? null })),
});
const holding = (memory: Holding['memory'], held: Holding['devices']): Holding => {
  return { cpus: null, isolation: 'host', hint, memory, devices: held };
};
const app = holding([block([0], 400), block([0], 4096, 'hugepages-2Ki')], devices('a', 'b'));
/** The init container has left its device and most of its memory to the app. */
const sound: Holdings = { init: holding([block([0], 0)], devices('a')), app };

/** With an account that fits the blocks, node by node. */
function placementOf(pods: Record<string, Holdings>): Placement {
  const free: Record<number, Record<string, number>> = {};
  for (const { node, type, allocatable } of capacities) free[node] = { ...free[node], [type]: allocatable };
  const blocks = Object.values(pods).flatMap((holdings) =>
    Object.values(holdings).flatMap(({ memory }) => memory),
  );
  for (const { nodes: on, type, bytes } of blocks) {
    const types = free[on[0]!];
    if (types?.[type] !== undefined) types[type] -= bytes;
  }
  const memory = tablesOf(capacities, free, blocks);
  return { pods: new Map(Object.entries(pods)), bookings: new Map(), sharedPool: '0', memory };
}

describe('a placement', () => {
  it('of memory and devices that keeps the rules has no flaw', () => {
    expect(flawOf(placementOf({}), rules)).toBeUndefined();
    expect(flawOf(placementOf({ web: sound }), rules)).toBeUndefined();
    // Once they have started.
    expect(flawOf(placementOf({ web: { app, init: holding([], devices('a')) } }), rules)).toBeUndefined();
    const wide = { app: holding([block([0, 1], 50)], devices('d')) };
    expect(flawOf(placementOf({ one: wide }), rules)).toBeUndefined();
  });

  const small = (on: number[], id: string) => ({ app: holding([block(on, 50)], devices(id)) });
  const changed = (change: Partial<Holding>): Record<string, Holdings> => ({
    web: { ...sound, app: { ...app, ...change } },
  });
  const { memory } = app;

  it.each<[string, Record<string, Holdings>, string]>([
    ['with a device of two pods', { web: sound, one: small([1], 'b') }, "b is both web's and one's"],
    ['with fewer devices than asked for', changed({ devices: devices('a') }), 'instead of 2'],
    ['with more devices than asked for', changed({ devices: devices('a', 'b', 'c') }), 'instead of 2'],
    ['with no devices at all', changed({ devices: {} }), 'instead of 2'],
    ['with the same device twice', changed({ devices: devices('a', 'a') }), 'instead of 2'],
    ['with a device that is not registered', changed({ devices: devices('a', 'x') }), 'x of example.com/gpu'],
    [
      'with a device on other nodes than it is',
      changed({ devices: { [gpu]: [...devices('a')[gpu]!, { id: 'b', nodes: [1] }] } }),
      'b of example.com/gpu on NUMA nodes 1',
    ],
    [
      'with devices of an unknown resource',
      changed({ devices: { ...devices('a', 'b'), 'example.com/nic': [] } }),
      'example.com/nic, which is not registered',
    ],
    [
      'with a device of a sidecar that the app has too',
      {
        side: {
          proxy: holding([block([0], 50)], devices('a')),
          app: holding([block([0], 50)], devices('a')),
        },
      },
      'a of example.com/gpu of another container',
    ],
    [
      'with less memory than asked for',
      changed({ memory: [block([0], 399), memory[1]!] }),
      '399 bytes of memory instead of 400',
    ],
    [
      'with more memory than asked for',
      changed({ memory: [block([0], 401), memory[1]!] }),
      '401 bytes of memory instead of 400',
    ],
    ['without its memory', changed({ memory: [] }), 'no bytes of memory instead of 400'],
    ['without its hugepages', changed({ memory: [memory[0]!] }), 'no bytes of hugepages-2Ki'],
    ['with memory on no node', changed({ memory: [block([], 400), memory[1]!] }), 'on no NUMA node'],
    [
      'with two blocks of a type',
      changed({ memory: [block([0], 200), block([0], 200)] }),
      'two memory blocks',
    ],
    [
      'with memory that was not asked for',
      changed({ memory: [...memory, block([0], 1, 'hugepages-1Gi')] }),
      'bytes of hugepages-1Gi instead of 0',
    ],
    [
      'with more memory for an init container than asked for',
      { web: { ...sound, init: holding([block([0], 301)], devices('a')) } },
      '301 bytes of memory instead of 300',
    ],
    ['on groups of nodes that overlap', { web: sound, one: small([0, 1], 'c') }, 'overlap'],
    [
      'with more memory than a node can give',
      { big: { app: holding([block([0], 950)], {}) } },
      '950 bytes are booked of 900',
    ],
  ])('%s has a flaw', (_, pods, flaw) => {
    expect(flawOf(placementOf(pods), rules)).toContain(flaw);
  });

  type Table = Placement['memory'][number];
  it.each<[string, (table: Table) => Partial<Table>, string]>([
    [
      'books more than is allocatable',
      ({ allocatable }) => ({ reserved: allocatable + 1, free: -1 }),
      'are booked of',
    ],
    ['has more free than it has', ({ free }) => ({ free: free + 1 }), 'are not all of them'],
    [
      'books what no block holds',
      ({ reserved, free }) => ({ reserved: reserved + 1, free: free - 1 }),
      '1 bytes more',
    ],
    [
      'reserves other amounts',
      ({ systemReserved }) => ({ systemReserved: systemReserved + 1 }),
      'is said to have',
    ],
    [
      'allocates what is reserved',
      ({ allocatable }) => ({ allocatable: allocatable + 1 }),
      'is said to have',
    ],
    ['has more than the machine', ({ total }) => ({ total: total + 1 }), 'is said to have'],
    ['counts nodes together that share nothing', () => ({ group: [0, 1] }), 'given away with 0,1'],
  ])('whose account %s has a flaw', (_, change, flaw) => {
    const placement = placementOf({ web: sound });
    const [first, ...rest] = placement.memory;
    expect(flawOf({ ...placement, memory: [{ ...first!, ...change(first!) }, ...rest] }, rules)).toContain(
      flaw,
    );
    expect(flawOf({ ...placement, memory: rest }, rules)).toContain('is said to have');
  });
});

describe('recorded devices', () => {
  const recorded = (ids: string[] | null, perNuma: Record<string, number>): RecordedHoldings[string] => {
    return { cpus: null, hint, memoryBlocks: null, devices: { [gpu]: { ids, perNuma } } };
  };
  /** The ids of every container, as `pod container: ids`. */
  const idsOf = (pods: Record<string, RecordedHoldings>) => {
    const placed = withDevices(new Map(Object.entries(pods)), claims, inventory);
    if (!placed) return undefined;
    return [...placed].flatMap(([uid, holdings]) =>
      Object.entries(holdings).map(([name, held]) => {
        return `${uid} ${name}: ${(held.devices[gpu] ?? []).map(({ id }) => id).sort()}`;
      }),
    );
  };

  it('are the known ones, and fitting ones for unknown ones', () => {
    const known = { one: { app: recorded(['a'], { 0: 1 }) } };
    expect(
      idsOf({ side: { proxy: recorded(null, { 0: 1 }), app: recorded(null, { none: 1 }) }, ...known }),
    ).toEqual(['side proxy: b', 'side app: d', 'one app: a']);
  });

  it('of an init container are among those of the app, where that has as many', () => {
    const init = recorded(null, { 0: 1 });
    expect(idsOf({ web: { init, app: recorded(null, { 0: 2 }) } })).toEqual(['web init: a', 'web app: a,b']);
    expect(idsOf({ web: { init, app: recorded(['a', 'b'], { 0: 2 }) } })).toEqual([
      'web init: a',
      'web app: a,b',
    ]);
    const taken = { one: { app: recorded(['a'], { 0: 1 }) } };
    expect(idsOf({ web: { init, app: recorded(['b', 'c'], { 0: 1, 1: 1 }) }, ...taken })?.[0]).toBe(
      'web init: b',
    );
  });

  it('do not exist if more are recorded than the machine has', () => {
    expect(idsOf({ one: { app: recorded(null, { 1: 2 }) } })).toBeUndefined();
    const taken = { side: { proxy: recorded(['c'], { 1: 1 }), app: recorded(null, {}) } };
    expect(idsOf({ ...taken, one: { app: recorded(null, { 1: 1 }) } })).toBeUndefined();
    expect(idsOf({ one: { app: recorded(null, { '0,1': 1 }) } })).toBeUndefined();
  });
});

describe('a placement of a pod that is booked as a whole', () => {
  const plrm = { PodLevelResources: true, PodLevelResourceManagers: true };
  const own = { cpu: 2000, memory: 30 };
  const whole = { cpu: 4000, memory: 100 };
  const pod = {
    uid: 'whole',
    initContainers: [{ name: 'init', requests: {}, limits: {} }],
    containers: [
      { name: 'own', requests: own, limits: own },
      { name: 'shared', requests: {}, limits: {} },
    ],
    podResources: { requests: whole, limits: whole },
  };
  const config = {
    ...policies,
    topologyPolicy: 'restricted',
    topologyScope: 'pod',
    featureGates: plrm,
  } as const;
  const cpus = Array.from({ length: 6 }, (_, cpu) => [cpu, cpu, 0, 0]);
  const wholeRules: Rules = {
    ...rules,
    machine: { ...rules.machine, cpus },
    claims: new Map([['whole', claimsOf(pod, config)]]),
    wholes: new Map([['whole', wholeOf(pod, config)!]]),
  };

  const part = (list: string, isolation: Holding['isolation'], bytes: number): Holding => ({
    ...{ cpus: list, isolation, hint: { nodes: [0], preferred: true } },
    ...{ memory: [block([0], bytes)], devices: {} },
  });
  const good = {
    init: part('1-4', 'pod', 100),
    own: part('1-2', 'container', 30),
    shared: part('3-4', 'pod', 70),
  };
  const flaw = (holdings: Holdings, booking = { cpus: '1-4', memory: [block([0], 100)] }) => {
    const free = { 0: { memory: 900 - 100 } };
    const memory = tablesOf(capacities, free, booking.memory);
    const placement = { bookings: new Map([['whole', booking]]), sharedPool: '0,5', memory };
    return flawOf({ pods: new Map([['whole', holdings]]), ...placement }, wholeRules);
  };

  it('that keeps the rules has no flaw', () => {
    expect(flaw(good)).toBeUndefined();
    expect(flaw({ ...good, init: { ...good.init, memory: [] } })).toBeUndefined();
  });

  it.each<[string, Holdings, string]>([
    ['whose exclusive container has fewer CPUs', { ...good, own: part('1', 'container', 30) }, '1 CPUs'],
    ['whose CPUs are shared that are exclusive', { ...good, shared: part('2-3', 'pod', 70) }, 'should not'],
    ['that shares fewer than are left', { ...good, shared: part('3', 'pod', 70) }, '2 are left'],
    ['that shares CPUs it has not', { ...good, shared: part('3,5', 'pod', 70) }, 'should not'],
    ['that shares less memory than is left', { ...good, shared: part('3-4', 'pod', 69) }, '69 bytes'],
    ['whose exclusive container has more memory', { ...good, own: part('1-2', 'container', 31) }, '31 bytes'],
    ['that is said to run elsewhere', { ...good, shared: part('3-4', 'container', 70) }, 'said to run'],
    ['whose init container shares less', { ...good, init: part('3-4', 'pod', 100) }, '4 are left'],
  ])('%s has a flaw', (_, holdings, text) => {
    expect(flaw(holdings)).toContain(text);
  });

  it('with another booking has a flaw', () => {
    expect(flaw(good, { cpus: '1-5', memory: [block([0], 100)] })).toContain('5 CPUs booked');
    expect(flaw(good, { cpus: '1-4', memory: [block([0], 99)] })).toContain('99 bytes');
  });
});
