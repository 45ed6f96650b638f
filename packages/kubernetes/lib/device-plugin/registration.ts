// Registration: registers the plugin with the kubelet, and retries until it answers.
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ServiceError } from '@grpc/grpc-js';
import { grpc } from '../base/late-packages.js';
import { serviceDefinition } from '../grpc/service.js';
import type { Message, Schema } from '../protobuf/schema.js';

/** The kubelet's socket in the folder of device plugins. */
export const KUBELET_SOCKET = 'kubelet.sock';
export const API_VERSION = 'v1beta1';

const DEADLINE_MS = 10_000;
// The socket exists a moment before the kubelet listens. After 13 s in total, its next start is
// awaited.
const PAUSES_MS = [50, 100, 200, 400, 800, 1_600, 3_200, 6_400];

export interface RegistrationRequest {
  readonly folder: string;
  /** The name of the plugin's socket in the folder. */
  readonly endpoint: string;
  readonly resource: string;
}

function registerOnce(
  schema: Schema,
  { folder, endpoint, resource }: RegistrationRequest,
  signal: AbortSignal,
): Promise<void> {
  const { credentials, makeClientConstructor } = grpc();
  const Client = makeClientConstructor(serviceDefinition(schema, 'v1beta1.Registration'), 'Registration');
  const client = new Client(`unix://${join(folder, KUBELET_SOCKET)}`, credentials.createInsecure());
  const request = {
    version: API_VERSION,
    endpoint,
    resource_name: resource,
    options: { pre_start_required: false, get_preferred_allocation_available: true },
  };
  return new Promise<void>((resolve, reject) => {
    const deadline = Date.now() + DEADLINE_MS;
    const call = client.Register!(request, { deadline }, (error: ServiceError | null, _reply: Message) => {
      signal.removeEventListener('abort', cancel);
      error ? reject(error) : resolve();
    });
    const cancel = () => call.cancel();
    signal.addEventListener('abort', cancel);
  }).finally(() => client.close());
}

/**
 * Registers a plugin that already serves; retries for some seconds if the kubelet does not listen
 * yet.
 * @throws the kubelet's refusal as a gRPC error; the signal's reason
 */
export async function register(
  schema: Schema,
  request: RegistrationRequest,
  signal: AbortSignal,
): Promise<void> {
  for (const pauseMs of [...PAUSES_MS, null]) {
    try {
      return await registerOnce(schema, request, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (pauseMs === null || (error as ServiceError).code !== grpc().status.UNAVAILABLE) throw error;
    }
    await pause(pauseMs, undefined, { signal, ref: false });
  }
}
