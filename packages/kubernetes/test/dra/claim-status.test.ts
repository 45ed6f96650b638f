// needs: nothing
// What the status of a claim says of its devices.
import { expect, it, onTestFinished, vi } from 'vitest';
import { ApiError } from '../../lib/api-server/api-error.js';
import { ClaimStatuses } from '../../lib/dra/driver/claim-status.js';
import { ClaimsAtServer } from '../../lib/dra/driver/claims-at-server.js';
import {
  allocated,
  type ClaimResult,
  configured,
  DRIVER,
  DraNode,
  nameOf,
  PlayedClaims,
} from './dra-node.js';

const CPUS = [{ device: 'node-0', capacity: { cpu: '2', memory: '1Gi' }, shareID: 'share' }];
const wrong = { config: [configured({ polcy: 'none' })] };
const right = (results: readonly ClaimResult[] = CPUS) => allocated('a', results);

const prepare = (dra: DraNode, claim = right()) => {
  dra.claims.put(claim);
  return dra.plugin.prepare(nameOf(claim));
};
const conditionOf = (dra: DraNode) => dra.claims.devicesOf('a')[0]?.conditions[0];
const written = (dra: DraNode, count: number) =>
  vi.waitFor(() => expect(dra.claims.patches).toHaveLength(count), { timeout: 60_000 });

it('has a condition that says what the claim was granted', async () => {
  const dra = await DraNode.open();
  await prepare(dra);
  await written(dra, 1);
  expect(dra.claims.patches[0]).toEqual({
    resource: {
      ...{ group: 'resource.k8s.io', version: 'v1', plural: 'resourceclaims' },
      ...{ namespace: 'default', subresource: 'status' },
    },
    devices: [
      {
        ...{ driver: DRIVER, pool: 'node', device: 'node-0', shareID: 'share' },
        conditions: [
          {
            ...{ type: 'Ready', status: 'True', reason: 'Prepared' },
            message: 'CPUs 1-2, 1 GiB of memory on NUMA node 0',
            lastTransitionTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
          },
        ],
      },
    ],
  });
});

it.each<[string, string, RegExp, () => ReturnType<typeof allocated>, (dra: DraNode) => void]>([
  ['wrong parameters', 'ERR_CLAIM_PARAMETERS', /polcy/, () => allocated('a', CPUS, wrong), () => {}],
  [
    'a device for administrators',
    'ERR_CLAIM_DEVICE',
    /adminAccess/,
    () => allocated('a', [{ device: 'node-0', adminAccess: true }]),
    () => {},
  ],
  [
    'several pods',
    'ERR_CLAIM_SHARED',
    /one, two/,
    () => allocated('a', CPUS, { pods: ['one', 'two'] }),
    () => {},
  ],
  [
    'a runtime without NRI',
    'ERR_CLAIM_WITHOUT_NRI',
    /no plugin/,
    right,
    (dra) => {
      dra.nriFlaw = 'no plugin';
    },
  ],
])(
  'has a condition with the error of a claim with %s, which its pods hear, too',
  async (_, code, message, claim, set) => {
    const dra = await DraNode.open();
    set(dra);
    await expect(prepare(dra, claim())).rejects.toThrow(code);
    await written(dra, 1);
    expect(conditionOf(dra)).toMatchObject({
      ...{ type: 'Ready', status: 'False', reason: code, message: expect.stringMatching(message) },
    });
    expect(dra.events[0]).toMatchObject({ reason: 'ClaimRefused', message: expect.stringMatching(message) });
  },
);

it('is written once for the same error, and again when the claim is prepared', async () => {
  const dra = await DraNode.open();
  const outside = await dra.node.manager.adopt({ containers: [{ name: 'main', cpus: '5' }] });
  const claim = allocated('a', [{ device: 'cpu-5' }]);
  await expect(prepare(dra, claim)).rejects.toThrow(/ERR_INSUFFICIENT_CPUS/);
  await written(dra, 1);
  const since = '2026-01-01T00:00:00Z';
  const [device] = dra.claims.devicesOf('a');
  dra.claims.change('a', {
    devices: [
      {
        ...device,
        data: { of: 'it' },
        conditions: [{ ...device!.conditions[0], lastTransitionTime: since }],
      },
    ],
  });
  await expect(dra.plugin.prepare(nameOf(claim))).rejects.toThrow(/ERR_INSUFFICIENT_CPUS/);
  await outside.release();
  await dra.plugin.prepare(nameOf(claim));
  await written(dra, 2);
  await dra.plugin.prepare(nameOf(claim));
  await dra.driver.close();
  expect(dra.claims.patches).toHaveLength(2);
  expect(dra.claims.devicesOf('a')).toMatchObject([
    { data: { of: 'it' }, conditions: [{ status: 'True', reason: 'Prepared', message: 'CPUs 5' }] },
  ]);
  expect(conditionOf(dra).lastTransitionTime).not.toBe(since);
});

it('leaves what other drivers have written, also meanwhile', async () => {
  const dra = await DraNode.open();
  const gpu = { driver: 'gpu.example.com', pool: 'node', device: 'gpu-0', conditions: [] };
  const results = [...CPUS, { device: 'gpu-0', driver: 'gpu.example.com' }];
  let isFirst = true;
  dra.claims.beforePatch = () => {
    if (isFirst) dra.claims.change('a', { devices: [gpu] });
    isFirst = false;
  };
  await prepare(dra, right(results));
  await written(dra, 1);
  expect(dra.claims.devicesOf('a').map(({ device }) => device)).toEqual(['gpu-0', 'node-0']);
});

it('is given up for a claim that has replaced it', async () => {
  const dra = await DraNode.open();
  const gets = () => dra.claims.gets;
  dra.claims.beforePatch = () => dra.claims.put(allocated('a', CPUS, { uid: 'other' }));
  await prepare(dra);
  await vi.waitFor(() => expect(gets()).toBe(2), { timeout: 60_000 });
  await dra.driver.close();
  expect(dra.claims.patches).toEqual([]);
});

it.each<[string, ClaimResult]>([
  ['another node', { ...CPUS[0]!, pool: 'other' }],
  ['another share of its device', { ...CPUS[0]!, shareID: 'other' }],
])('is given up for a claim that was allocated again meanwhile, with %s', async (_, again) => {
  const dra = await DraNode.open();
  dra.claims.beforePatch = () => {
    dra.claims.beforePatch = () => {};
    const { allocation } = allocated('a', [again]).status as { allocation: object };
    dra.claims.change('a', { allocation });
  };
  await prepare(dra);
  await vi.waitFor(() => expect(dra.claims.gets).toBe(2), { timeout: 20_000 });
  // Nothing else waits: it would be written by then.
  await new Promise((resolve) => setImmediate(resolve));
  await dra.driver.close();
  expect(dra.claims.patches).toEqual([]);
  expect(dra.claims.devicesOf('a')).toEqual([]);
});

it('delays nothing and fails nothing, and what is wrong with it is a warning once', async () => {
  const dra = await DraNode.open();
  const names = ['a', 'b'];
  dra.claims.beforePatch = () => {
    throw new ApiError('ERR_API_FORBIDDEN', 'may not patch resourceclaims/status');
  };
  for (const name of names) {
    const claim = allocated(name, [{ device: 'node-0', capacity: { cpu: '1' } }]);
    dra.claims.put(claim);
    await dra.plugin.prepare(nameOf(claim));
  }
  const lines = (level: string) =>
    dra.lines.filter((line) => line.startsWith(`${level}: the status of claim`));
  await vi.waitFor(() => expect(lines('debug')).toHaveLength(1), { timeout: 60_000 });
  expect(lines('warn')).toEqual([expect.stringContaining('may not patch resourceclaims/status')]);
});

it.each(['ERR_API_BUSY', 'ERR_API_SERVER', 'ERR_API_TIMEOUT', 'ERR_API_UNREACHABLE'] as const)(
  'is written later, and only as it is by then, after %s',
  async (code) => {
    const dra = await DraNode.open();
    let isFailing = true;
    let failures = 0;
    dra.claims.beforePatch = () => {
      if (!isFailing) return;
      failures++;
      throw new ApiError(code, 'not now');
    };
    dra.nriFlaw = 'no plugin';
    await expect(prepare(dra)).rejects.toThrow('ERR_CLAIM_WITHOUT_NRI');
    await expect(prepare(dra)).rejects.toThrow('ERR_CLAIM_WITHOUT_NRI');
    await vi.waitFor(() => expect(failures).toBeGreaterThan(0), { timeout: 20_000 });
    dra.nriFlaw = undefined;
    await prepare(dra);
    isFailing = false;
    await vi.waitFor(() => expect(conditionOf(dra)).toMatchObject({ status: 'True' }), { timeout: 20_000 });
    expect(dra.claims.patches).toHaveLength(1);
    expect(dra.lines.filter((line) => line.startsWith('warn: the status of claim'))).toHaveLength(1);
  },
);

it('is tried again for at most 1,000 claims at a time, the last ones', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const [claims, lines] = [new PlayedClaims(), [] as string[]];
  const log = (level: string) => void lines.push(level);
  const statuses = new ClaimStatuses({
    ...{ driver: DRIVER, apiServer: claims, claims: new ClaimsAtServer(claims), log },
  });
  claims.beforePatch = () => {
    throw new ApiError('ERR_API_SERVER', 'not now');
  };
  const names = Array.from({ length: 1002 }, (_, i) => `c${i}`);
  for (const name of names) {
    claims.put(allocated(name, CPUS));
    statuses.tell(claims.claims.get(name)!, { code: undefined, message: 'CPUs 1' });
  }
  await vi.waitFor(() => expect(lines.length).toBeGreaterThan(1000), { timeout: 20_000 });
  claims.beforePatch = () => {};
  await vi.waitFor(() => expect(claims.patches).toHaveLength(1000), { timeout: 20_000 });
  await statuses.close();
  expect(names.filter((name) => claims.devicesOf(name).length === 0)).toEqual(['c0', 'c1']);
});

it('is not waited for when the driver ends', async () => {
  const dra = await DraNode.open();
  let asked = () => {};
  const isAsked = new Promise<void>((resolve) => (asked = resolve));
  dra.claims.beforePatch = (signal) => {
    asked();
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  await prepare(dra);
  await isAsked;
  await dra.driver.close();
  expect(dra.lines.filter((line) => line.includes('the status of claim'))).toEqual([]);
});
