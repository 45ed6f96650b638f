// RuntimeState: the pods and containers of a Synchronize, which comes in parts if there are many.
import { countFields } from '../protobuf/fields.js';
import { Status, StatusError } from '../ttrpc/status.js';
import type { Container, PodSandbox } from './messages.js';
import { decode, readable } from './protocol.js';

// Far more than one machine runs (the kubelet's default is 110 pods): the limit for a runtime that
// never stops sending. An empty container has two bytes on the wire, but hundreds in memory.
const OBJECT_LIMIT = 1 << 16;
const BYTE_LIMIT = 64 << 20;

export class RuntimeState {
  private readonly allPods: PodSandbox[] = [];
  private readonly allContainers: Container[] = [];
  private bytes = 0;

  get pods(): readonly PodSandbox[] {
    return this.allPods;
  }

  get containers(): readonly Container[] {
    return this.allContainers;
  }

  /**
   * @returns whether more is to come
   * @throws StatusError INVALID_ARGUMENT, or RESOURCE_EXHAUSTED for more than the limit
   */
  add(payload: Uint8Array): boolean {
    this.bytes += payload.length;
    if (this.bytes > BYTE_LIMIT) throw exhausted(`pods and containers of more than ${BYTE_LIMIT} bytes`);
    const count = readable('SynchronizeRequest', () => countFields(payload));
    if (this.allPods.length + this.allContainers.length + count > OBJECT_LIMIT) {
      throw exhausted(`more than ${OBJECT_LIMIT} pods and containers`);
    }
    const { pods, containers, more } = decode('SynchronizeRequest', payload);
    for (const pod of pods) this.allPods.push(pod);
    for (const container of containers) this.allContainers.push(container);
    return more;
  }
}

function exhausted(flaw: string): StatusError {
  return new StatusError(Status.RESOURCE_EXHAUSTED, flaw);
}
