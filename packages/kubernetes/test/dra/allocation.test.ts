// needs: nothing
import { discover } from 'numalign/topology';
import { expect, it } from 'vitest';
import type { KubernetesObject } from '../../lib/api-server/resource.js';
import { allocatedClaim } from '../../lib/dra/allocation/allocated-claim.js';
import { claimParts } from '../../lib/dra/allocation/claim-parts.js';
import { parametersOf } from '../../lib/dra/devices.js';
import { thrownBy } from '../support/nri-objects.js';
import { allocated, type ClaimOptions, type ClaimResult, configured, DRIVER } from './dra-node.js';

const topology = await discover({ synthetic: 'numa:2(memory=8GB) l3:1 core:2 pu:2' });

const read = (object: KubernetesObject) => allocatedClaim(object, DRIVER, object.metadata.uid!);
const partsOf = (results: readonly ClaimResult[], options?: ClaimOptions) =>
  claimParts(read(allocated('a', results, options)), topology, DRIVER).map(({ within, ...part }) => ({
    ...part,
    within: `${within}`,
  }));

it('makes a part of each shared device, and one of all cores of a request', () => {
  const parts = partsOf([
    { request: 'a', device: 'core-0' },
    { request: 'b', device: 'node-1', capacity: { cpu: '2', memory: '1Gi', hugepages2Mi: '4Mi' } },
    { request: 'a', device: 'core-4' },
    { request: 'c/best', device: 'memory-0', capacity: { [`${DRIVER}/memory`]: '1M' } },
  ]);
  expect(parts).toMatchObject([
    { request: 'b', within: '4-7', exclusive: 2, memory: { memory: 2 ** 30, 'hugepages-2Mi': 2 ** 22 } },
    { request: 'c/best', exclusive: 0, memory: { memory: 1_000_000 }, device: { node: 0 } },
    { request: 'a', within: '0-1,4-5', exclusive: 4, isExact: true },
  ]);
});

it.each<[string, string, readonly ClaimResult[]]>([
  ['a device that the machine does not have', 'ERR_CLAIM_DEVICE', [{ device: 'node-7' }]],
  ['a device with adminAccess', 'ERR_CLAIM_DEVICE', [{ device: 'node-0', adminAccess: true }]],
  ['a device without an amount', 'ERR_CLAIM_AMOUNT', [{ device: 'node-0' }]],
  ['a part of a CPU', 'ERR_CLAIM_AMOUNT', [{ device: 'node-0', capacity: { cpu: '1500m' } }]],
  ['nothing of a device', 'ERR_CLAIM_AMOUNT', [{ device: 'node-0', capacity: { cpu: '0' } }]],
  ['other drivers alone', 'ERR_CLAIM_NOT_ALLOCATED', [{ device: 'gpu-0', driver: 'gpu.example.com' }]],
])('refuses %s', (_, code, results) => {
  expect(thrownBy(() => partsOf(results))).toMatchObject({ code, details: { valid: expect.anything() } });
});

it('refuses a claim that has replaced another one of its name', () => {
  const object = allocated('a', [{ device: 'node-0', capacity: { cpu: '1' } }]);
  expect(thrownBy(() => allocatedClaim(object, DRIVER, 'earlier'))).toMatchObject({
    ...{ code: 'ERR_CLAIM_REPLACED', details: { value: 'earlier', valid: 'a-uid' } },
  });
});

it('merges the parameters of a request, of which later ones take precedence', () => {
  const quiet = { interrupts: true };
  const { configs } = read(
    allocated('a', [{ device: 'node-0', capacity: { cpu: '1' } }], {
      config: [
        configured({ coreKind: 'any', quiet }),
        configured({ coreKind: 'performance' }, ['cpus']),
        configured({ smt: 'hold-sibling' }, ['other']),
        { opaque: { driver: 'gpu.example.com', parameters: { whatever: 1 } } },
      ],
    }),
  );
  expect(parametersOf(DRIVER, configs, 'cpus/best')).toEqual({ coreKind: 'performance', quiet });
  expect(parametersOf(DRIVER, configs, 'other')).toEqual({ coreKind: 'any', quiet, smt: 'hold-sibling' });
});

it('aims at the enforcement that is required', () => {
  const of = (require: unknown) =>
    parametersOf(DRIVER, [{ requests: [], value: configured({ require }).opaque.parameters }], 'cpus');
  expect(of('cpuset')).toEqual({ require: 'cpuset', enforcement: 'cpuset' });
  expect(of({ enforcement: 'members' })).toMatchObject({ enforcement: 'members' });
  expect(of('recorded')).toEqual({ require: 'recorded' });
});

it('reads how many CPUs a request asks for, in each form of requests', () => {
  const asking = (cpu: string) => ({ capacity: { requests: { cpu } } });
  const { results } = read(
    allocated(
      'a',
      [{ device: 'node-0' }, { request: 'old', device: 'node-0' }, { request: 'any/b', device: 'node-1' }],
      {
        requests: [
          { name: 'cpus', exactly: asking('1500m') },
          { name: 'old', ...asking('2500m') },
          {
            name: 'any',
            firstAvailable: [
              { name: 'a', ...asking('3') },
              { name: 'b', ...asking('4') },
            ],
          },
        ],
      },
    ),
  );
  expect(results.map(({ asked }) => asked)).toEqual(['1500m', '2500m', '4']);
});

it.each<[string, string, object, RegExp]>([
  ['mixed', 'core-0', { mixed: true }, /mixed must be left out for devices core: /],
  ['movable', 'core-0', { movable: true }, /movable must be left out for devices core: /],
  ['movable', 'cpu-1', { movable: { notice: '1s' } }, /movable must be left out for devices cpu: /],
  ['movable', 'l3-0', { movable: true }, /movable must be left out for devices l3: /],
  ['movable.exclude', 'node-0', { movable: { exclude: [1] } }, /movable.exclude must be left out/],
  ['movable.maxPerHour', 'node-0', { movable: { maxPerHour: 0 } }, /movable.maxPerHour must be .* from 1/],
])('refuses %s of %s, where it cannot hold: %j', (_, device, parameters, message) => {
  const config = [configured(parameters)];
  const capacity = /^(core|cpu)/.test(device) ? {} : { capacity: { cpu: '1' } };
  expect(thrownBy(() => partsOf([{ device, ...capacity }], { config }))).toMatchObject({
    code: 'ERR_CLAIM_PARAMETERS',
    message: expect.stringMatching(message),
    details: { valid: expect.stringMatching(/./) },
  });
});

it.each<[string, object, RegExp]>([
  ['an unknown field', { corekind: 'any' }, /coreKind/],
  ['an unknown value', { coreKind: 'fast' }, /coreKind.*fast/],
  ['a partition, which takes CPUs from cgroups of the runtime', { require: 'partition' }, /require/],
  ['what devices say', { within: '0-1' }, /capacity of the request/],
  ['another kind', { kind: 'Parameters' }, /kind.*ClaimParameters/],
  ['another version', { apiVersion: `${DRIVER}/v2` }, /apiVersion.*v1alpha1/],
  ['quiet parts that there are not', { quiet: { fans: true } }, /fans/],
])('refuses parameters with %s', (_, parameters, message) => {
  const config = [configured(parameters)];
  const error = thrownBy(() => partsOf([{ device: 'node-0', capacity: { cpu: '1' } }], { config }));
  expect(error).toMatchObject({ code: 'ERR_CLAIM_PARAMETERS', message: expect.stringMatching(message) });
});
