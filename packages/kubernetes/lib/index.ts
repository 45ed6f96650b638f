// What an agent embeds to serve containers.
export { NodeError, type NodeErrorCode } from './base/errors.js';
export type { Log } from './base/log.js';
export type { Cpuset } from './cgroups/cpuset.js';
export { AttachmentKeeper, type AttachmentKeeperOptions } from './cri/attachment-keeper.js';
export {
  type AttachedContainer,
  ContainerAttachment,
  type ContainerAttachmentOptions,
} from './cri/container-attachment.js';
export {
  ContainerRuntime,
  type ContainersFilter,
  type CpusetChoice,
  type RunningContainer,
  type RuntimeContainer,
  type RuntimeVersion,
} from './cri/container-runtime.js';
export { RuntimeClient, type RuntimeClientOptions } from './cri/runtime-client.js';
export { findRuntimeSocket, RUNTIME_SOCKETS } from './cri/runtime-sockets.js';
export type { ContainerMove } from './cri/shared-containers.js';
export { NRI_SOCKET, NumalignNode, type NumalignNodeOptions } from './node.js';
export type { Message } from './protobuf/schema.js';
