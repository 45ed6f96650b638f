// Protocol: NRI's messages on the wire.
import { type Message, Schema } from '../protobuf/schema.js';
import { Status, StatusError } from '../ttrpc/status.js';

export const PLUGIN_SERVICE = 'nri.pkg.api.v1alpha1.Plugin';
export const RUNTIME_SERVICE = 'nri.pkg.api.v1alpha1.Runtime';

/** Connections of the Mux, by the side that serves there. */
export const PLUGIN_CONNECTION = 1;
export const RUNTIME_CONNECTION = 2;

const schema = new Schema('nri');

/** Prepares what would otherwise delay the first answer by about 20 ms. */
export function prepareMessages(): void {
  schema.prepare();
}

/** `type`: for example `SynchronizeRequest`. */
export function encode(type: string, message: Message): Uint8Array {
  return schema.encode(`nri.pkg.api.v1alpha1.${type}`, message);
}

/** @throws StatusError INVALID_ARGUMENT if the bytes are not such a message */
export function decode(type: string, bytes: Uint8Array): Message {
  return readable(type, () => schema.decode(`nri.pkg.api.v1alpha1.${type}`, bytes));
}

/** @throws StatusError INVALID_ARGUMENT if `read` throws */
export function readable<T>(type: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new StatusError(Status.INVALID_ARGUMENT, `invalid ${type}: ${(error as Error).message}`);
  }
}
