// The exports of the package: what an agent needs to serve containers.
export { API_ERROR_CODES, ApiError, type ApiErrorCode } from './api-server/api-error.js';
export { ApiServer, type ApiServerOptions, type CallOptions } from './api-server/api-server.js';
export {
  type ApiServerFiles,
  type InClusterConfiguration,
  inClusterConfiguration,
} from './api-server/configuration.js';
export type { KubernetesObject, Resource } from './api-server/resource.js';
export type { WatchEvent, WatchOptions } from './api-server/watch.js';
export { NodeError, type NodeErrorCode } from './base/errors.js';
export { type Log, type LogFields, type LogLevel, type LogWriterOptions, logWriter } from './base/log.js';
export type { Cpuset } from './cgroups/cpuset.js';
export { checkNode } from './check/check-node.js';
export type { CheckOptions } from './check/check-options.js';
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
export type { ContainerMove } from './cri/neighbours.js';
export { RuntimeClient, type RuntimeClientOptions } from './cri/runtime-client.js';
export { findRuntimeSocket, RUNTIME_SOCKETS } from './cri/runtime-sockets.js';
export {
  DEVICE_PLUGINS,
  DevicePlugin,
  type DevicePluginOptions,
} from './device-plugin/device-plugin.js';
export type { DeviceUnit } from './device-plugin/inventory.js';
export { DraDriver, type DraDriverOptions } from './dra/driver/dra-driver.js';
export type { NodeEvent, NodeSubject, PodSubject, RecordEvent } from './events/event.js';
export { EventRecorder, type EventRecorderOptions } from './events/event-recorder.js';
export type { ContainerHoldings, DeviceHolding, MemoryHolding, PodHoldings } from './kubelet/holdings.js';
export { KubeletFollower, type KubeletFollowerOptions } from './kubelet/kubelet-follower.js';
export { PodResources, type PodResourcesOptions } from './kubelet/pod-resources.js';
export type { Counter, Histogram, Labels, Metrics, Values } from './metrics/metrics.js';
export { PrometheusMetrics } from './metrics/prometheus.js';
export { NRI_SOCKET, NumalignNode, type NumalignNodeOptions } from './node.js';
export { NodeAgent, type NodeAgentOptions } from './node-agent.js';
export type { Message } from './protobuf/schema.js';
export type { NodeResourceTopology, ResourceInfo, Zone } from './publish/node-resource-topology.js';
export { TopologyPublisher, type TopologyPublisherOptions } from './publish/topology-publisher.js';
export { zonesOf } from './publish/zones.js';
