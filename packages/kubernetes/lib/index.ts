// What an agent embeds to serve containers.
export { NodeError, type NodeErrorCode } from './base/errors.js';
export { RuntimeClient, type RuntimeClientOptions } from './cri/runtime-client.js';
export type { Message } from './protobuf/schema.js';
