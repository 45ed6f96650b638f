// needs: nothing
import { credentials, makeClientConstructor, type ServiceError } from '@grpc/grpc-js';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { budget } from '../../../../test/support/budget.mjs';
import { allocatedClaim } from '../../lib/dra/allocation/allocated-claim.js';
import { claimParts } from '../../lib/dra/allocation/claim-parts.js';
import { CdiFiles } from '../../lib/dra/preparation/cdi-files.js';
import { Schema } from '../../lib/protobuf/schema.js';
import { allocated, configured, DRIVER, DraNode, nameOf } from './dra-node.js';

const PATH = '/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin';
const METHODS = ['NodePrepareResources', 'NodeUnprepareResources'];
const TYPE = 'k8s.io.kubelet.pkg.apis.dra.v1.NodePrepareResourcesRequest';

/** Sends bytes as they are. */
const Raw = makeClientConstructor(
  Object.fromEntries(
    METHODS.map((name) => [
      name,
      {
        ...{ path: `${PATH}/${name}`, requestStream: false, responseStream: false, originalName: name },
        requestSerialize: (bytes: Buffer) => bytes,
        requestDeserialize: (bytes: Buffer) => bytes,
        responseSerialize: (bytes: Buffer) => bytes,
        responseDeserialize: (bytes: Buffer) => bytes,
      },
    ]),
  ),
  'Raw',
);

const text = fc.oneof(
  fc.string(),
  fc.constantFrom('', '..', '../../etc', '__proto__', 'a/b', 'x'.repeat(300), 'a-uid', '\0'),
);

it('answers whatever bytes and names come, grants nothing, and goes on', async () => {
  const dra = await DraNode.open();
  const { info } = await dra.kubelet.register();
  const client = new Raw(`unix://${info.endpoint}`, credentials.createInsecure()) as any;
  onTestFinished(() => client.close());
  const send = (method: string, bytes: Uint8Array) =>
    new Promise<ServiceError | null>((resolve) => client[method](Buffer.from(bytes), resolve));
  const schema = new Schema('dra');
  const claims = fc.array(fc.record({ namespace: text, uid: text, name: text }), { maxLength: 4 });
  const messages = claims.map((list) => schema.encode(TYPE, { claims: list }));
  const damaged = fc.tuple(messages, fc.nat(), fc.nat(255)).map(([bytes, at, value]) => {
    const copy = Uint8Array.from(bytes);
    if (copy.length > 0) copy[at % copy.length] = value;
    return copy;
  });
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...METHODS),
      fc.oneof(fc.uint8Array({ maxLength: 64 }), messages, damaged),
      async (method, bytes) => {
        const error = await send(method, bytes);
        // INTERNAL, RESOURCE_EXHAUSTED: what cannot be decoded.
        if (error) expect([8, 13]).toContain(error.code);
      },
    ),
    { numRuns: budget({ all: 10_000, usual: 20 }) },
  );
  expect(dra.node.manager.grants()).toEqual([]);
  expect(new CdiFiles(dra.cdiFolder, DRIVER).claimUids).toEqual([]);
  const claim = allocated('a', [{ device: 'node-0', capacity: { cpu: '1' } }]);
  dra.claims.put(claim);
  await dra.plugin.prepare(nameOf(claim));
}, 600_000);

const VALUES: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, undefined, '', 0, -1, 1.5, 'node-0', 'cpu-1', '1', '-1', '1e30', '99999999999Ti'),
  fc.jsonValue(),
);

/** A copy in which one value is another. */
function changed(value: unknown, at: number, other: unknown): unknown {
  const paths: string[][] = [];
  const walk = (each: unknown, path: string[]) => {
    paths.push(path);
    if (typeof each === 'object' && each !== null)
      for (const [key, inner] of Object.entries(each)) walk(inner, [...path, key]);
  };
  walk(value, []);
  const path = paths[at % paths.length]!;
  if (path.length === 0) return other;
  const copy = structuredClone(value) as Record<string, any>;
  const parent = path.slice(0, -1).reduce((each, key) => each[key], copy);
  parent[path.at(-1)!] = other;
  return copy;
}

// The API server checks all of a claim but these.
it('takes any parameters of a claim, or says what is wrong with them', async () => {
  const dra = await DraNode.open();
  const { topology } = dra.node.manager;
  const config = configured({
    quiet: { interrupts: true, idle: { maxLatency: 5 } },
    require: { enforcement: 'members' },
    mixed: true,
    movable: { maxPerHour: 2 },
  });
  const results = [{ device: 'node-0', capacity: { cpu: '1', memory: '1Gi' } }];
  fc.assert(
    fc.property(fc.nat(), VALUES, (at, other) => {
      const parameters = changed(config.opaque.parameters, at, other);
      const claim = allocated('a', results, {
        config: [config, { ...config, opaque: { ...config.opaque, parameters } }],
      });
      try {
        const [part] = claimParts(allocatedClaim(claim, DRIVER, 'a-uid'), topology, DRIVER);
        expect(part).toMatchObject({ exclusive: 1, memory: { memory: 2 ** 30 } });
      } catch (error) {
        expect(error).toMatchObject({ code: 'ERR_CLAIM_PARAMETERS' });
      }
    }),
    { numRuns: budget({ all: 20_000, usual: 100 }) },
  );
});
