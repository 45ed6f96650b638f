// PlayedPlugin: the calls of a kubelet to a DRA plugin, with the messages of k8s.io/kubelet's
// pkg/apis/dra/v1.
import { credentials, makeClientConstructor } from '@grpc/grpc-js';
import { serviceDefinition } from '../../../dist/grpc/service.js';
import { Schema } from '../../../dist/protobuf/schema.js';

const SERVICE = 'k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin';
const Plugin = makeClientConstructor(serviceDefinition(new Schema('dra'), SERVICE), 'DRAPlugin');

export class PlayedPlugin {
  #client;

  constructor(socket) {
    this.#client = new Plugin(`unix://${socket}`, credentials.createInsecure());
  }

  async #call(method, { metadata: { namespace, name, uid } }) {
    const { claims } = await new Promise((resolve, reject) => {
      this.#client[method]({ claims: [{ namespace, name, uid }] }, (error, reply) =>
        error ? reject(error) : resolve(reply),
      );
    });
    const { error, devices } = claims[uid];
    if (error !== '') throw new Error(error);
    return devices;
  }

  /** Returns the devices. */
  prepare(claim) {
    return this.#call('NodePrepareResources', claim);
  }

  unprepare(claim) {
    return this.#call('NodeUnprepareResources', claim);
  }

  close() {
    this.#client.close();
  }
}

/** A claim that a scheduler has allocated to a pod, by its uid: CPUs and memory of one NUMA node. */
export const allocatedClaim = (name, podUid, capacity, node = 0) => ({
  metadata: { name, namespace: 'default', uid: `${name}-uid` },
  status: {
    allocation: {
      devices: {
        results: [
          {
            ...{ request: 'cpus', driver: 'numalign.io', pool: 'node', device: `node-${node}` },
            consumedCapacity: capacity,
          },
        ],
      },
    },
    reservedFor: [{ resource: 'pods', name: podUid, uid: podUid }],
  },
});

/** The annotation by which a runtime gives a container these devices. */
export const cdiAnnotation = (devices) => ({
  'cdi.k8s.io/kubelet': devices.flatMap(({ cdi_device_ids }) => cdi_device_ids).join(','),
});
