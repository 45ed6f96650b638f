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
export {
  DEVICE_PLUGINS,
  DevicePlugin,
  type DevicePluginOptions,
} from './device-plugin/device-plugin.js';
export type { DeviceUnit } from './device-plugin/inventory.js';
export type { ContainerHoldings, DeviceHolding, MemoryHolding, PodHoldings } from './kubelet/holdings.js';
export { KubeletFollower, type KubeletFollowerOptions } from './kubelet/kubelet-follower.js';
export { PodResources, type PodResourcesOptions } from './kubelet/pod-resources.js';
export { NRI_SOCKET, NumalignNode, type NumalignNodeOptions } from './node.js';
export { NodeAgent, type NodeAgentOptions } from './node-agent.js';
export type { Message } from './protobuf/schema.js';
