// Frames of a runtime: good ones, and their hostile variants.
import { Schema } from '../../dist/protobuf/schema.js';

const nri = new Schema('nri');
const ttrpc = new Schema('ttrpc');
const PLUGIN = 'nri.pkg.api.v1alpha1.Plugin';

export const encode = (type, message) => Buffer.from(nri.encode(`nri.pkg.api.v1alpha1.${type}`, message));

export function mux(connection, payload, length = payload.length) {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(connection >>> 0, 0);
  header.writeUInt32BE(length >>> 0, 4);
  return Buffer.concat([header, payload]);
}

export function frame({ stream, type, flags = 0, message, length = message.length }) {
  const header = Buffer.alloc(10);
  header.writeUInt32BE(length >>> 0, 0);
  header.writeUInt32BE(stream >>> 0, 4);
  header[8] = type;
  header[9] = flags;
  return Buffer.concat([header, message]);
}

export const request = (method, payload, service = PLUGIN) =>
  Buffer.from(ttrpc.encode('ttrpc.Request', { service, method, payload, timeout_nano: 2e9 }));

export const response = (payload, status) =>
  Buffer.from(ttrpc.encode('ttrpc.Response', status ? { status } : { payload }));

const name = (random) =>
  random
    .bits()
    .toString(36)
    .repeat(1 + random.below(3));

function labels(random) {
  const names = ['app', '__proto__', 'constructor', '', 'numalign.io/exclusive', name(random)];
  return Object.fromEntries(
    Array.from({ length: random.below(4) }, () => [random.pick(names), name(random)]),
  );
}

const amounts = [0, 1, -1, 2 ** 31, 2 ** 53, 2 ** 63, -(2 ** 63), 1e300];
const amount = (random) => (random.chance(3) ? null : { value: random.pick(amounts) });

const resources = (random) => ({
  memory: { limit: amount(random), swap: amount(random) },
  cpu: {
    shares: amount(random),
    quota: amount(random),
    cpus: random.pick(['', '0-3', 'x', '0-'.repeat(100)]),
  },
  hugepage_limits: Array.from({ length: random.below(3) }, () => ({ page_size: '2MB', limit: 2 ** 64 })),
});

const pod = (random) => ({
  id: name(random),
  name: name(random),
  labels: labels(random),
  annotations: labels(random),
  linux: random.chance(3) ? null : { cgroup_parent: `/${name(random)}`, pod_resources: resources(random) },
});

const container = (random) => ({
  id: name(random),
  pod_sandbox_id: name(random),
  state: random.below(6),
  labels: labels(random),
  linux: random.chance(4) ? null : { cgroups_path: name(random), resources: resources(random) },
});

const several = (random, make, most) => Array.from({ length: random.below(most) }, () => make(random));

/** Calls of a runtime, by method, with their payloads. */
const CALLS = {
  Configure: (random) =>
    encode('ConfigureRequest', { runtime_name: name(random), request_timeout: random.pick(amounts) }),
  Synchronize: (random) =>
    encode('SynchronizeRequest', {
      pods: several(random, pod, 20),
      containers: several(random, container, 40),
      more: random.chance(3),
    }),
  CreateContainer: (random) =>
    encode('CreateContainerRequest', { pod: pod(random), container: container(random) }),
  UpdateContainer: (random) =>
    encode('UpdateContainerRequest', {
      pod: pod(random),
      container: container(random),
      linux_resources: resources(random),
    }),
  StopContainer: (random) =>
    encode('StopContainerRequest', { pod: pod(random), container: container(random) }),
  StateChange: (random) =>
    encode('StateChangeEvent', { event: random.below(16), pod: pod(random), container: container(random) }),
  RunPodSandbox: (random) => encode('EventRequest', { pod: pod(random) }),
  RemoveContainer: (random) => encode('EventRequest', { pod: pod(random), container: container(random) }),
  UpdatePodSandbox: (random) => encode('EventRequest', { pod: pod(random) }),
};

export const METHODS = Object.keys(CALLS);
export const payloadOf = (random, method) => CALLS[method](random);

/** The bytes with some of them changed, removed, doubled, or foreign ones inserted. */
export function mutate(random, bytes) {
  let result = Buffer.from(bytes);
  for (let times = 1 + random.below(4); times > 0; times -= 1) {
    const at = random.below(result.length + 1);
    const count = Math.min(1 + random.below(16), result.length - at);
    const [before, part, after] = [
      result.subarray(0, at),
      result.subarray(at, at + count),
      result.subarray(at + count),
    ];
    const noise = Buffer.from(Array.from({ length: 1 + random.below(8) }, () => random.below(256)));
    const changes = {
      flip: () => [before, Buffer.from(part.map((byte) => byte ^ (1 << random.below(8)))), after],
      remove: () => [before, after],
      double: () => [before, part, part, after],
      insert: () => [before, noise, part, after],
      cut: () => [before],
      // Lengths and varints at their ends.
      extreme: () => [before, Buffer.alloc(count, random.pick([0, 0x7f, 0x80, 0xff])), after],
    };
    result = Buffer.concat(changes[random.pick(Object.keys(changes))]());
  }
  return result;
}

/** Many fields in few bytes: empty containers, or groups within groups. */
export function bomb(random) {
  const unit = random.pick([[0x12, 0], [0x0a, 0], [0x0b], [0x12, 2, 0xa2, 1, 0], [0x5a, 2, 0x1a, 0]]);
  return Buffer.alloc(unit.length * (1 + random.below(40_000)), Buffer.from(unit));
}
