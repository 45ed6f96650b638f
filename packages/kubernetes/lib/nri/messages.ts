// Messages: the messages of NRI in the form of handlers, with fields and numbers as in
// proto/nri.proto. What comes from a runtime is complete: what it left out is 0, '', [], {}, or
// null for a message.
// Numbers of 64 bits are exact up to 2^53, and the nearest double beyond. An unlimited 2^63 - 1 is
// read as 2^63, and sent as 2^63 - 1 again.

export interface PodSandbox {
  readonly id: string;
  readonly name: string;
  readonly uid: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly runtime_handler: string;
  readonly linux: LinuxPodSandbox | null;
  readonly pid: number;
}

export interface LinuxPodSandbox {
  readonly pod_overhead: LinuxResources | null;
  readonly pod_resources: LinuxResources | null;
  readonly cgroup_parent: string;
  readonly cgroups_path: string;
}

export interface Container {
  readonly id: string;
  readonly pod_sandbox_id: string;
  readonly name: string;
  /** One of ContainerState; a newer runtime may have others. */
  readonly state: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** `NAME=value` for each environment variable. */
  readonly env: readonly string[];
  readonly linux: LinuxContainer | null;
  readonly pid: number;
  /** Empty before NRI 0.10. */
  readonly CDI_devices: readonly CDIDevice[];
}

export const ContainerState = { UNKNOWN: 0, CREATED: 1, PAUSED: 2, RUNNING: 3, STOPPED: 4 } as const;

export interface LinuxContainer {
  readonly devices: readonly LinuxDevice[];
  readonly resources: LinuxResources | null;
  readonly oom_score_adj: Optional<number>;
  readonly cgroups_path: string;
}

export interface LinuxDevice {
  readonly path: string;
  /** 'b', 'c', 'p' or 'u', as in mknod(1). */
  readonly type: string;
  readonly major: number;
  readonly minor: number;
  readonly file_mode: Optional<number>;
  readonly uid: Optional<number>;
  readonly gid: Optional<number>;
}

export interface CDIDevice {
  /** `vendor/class=name`. */
  readonly name: string;
}

export interface LinuxResources {
  readonly memory: LinuxMemory | null;
  readonly cpu: LinuxCPU | null;
  readonly hugepage_limits: readonly HugepageLimit[];
  /** Names of classes in the runtime's configuration. Only sent. */
  readonly blockio_class?: Optional<string>;
  readonly rdt_class?: Optional<string>;
  /** Files of cgroup v2 and their contents. */
  readonly unified: Readonly<Record<string, string>>;
}

/** Amounts in bytes. */
export interface LinuxMemory {
  readonly limit: Optional<number>;
  readonly reservation: Optional<number>;
  readonly swap: Optional<number>;
}

export interface LinuxCPU {
  readonly shares: Optional<number>;
  /** Microseconds per `period`; -1 means no limit. */
  readonly quota: Optional<number>;
  readonly period: Optional<number>;
  /** Lists as in cpuset(7), '' for none. */
  readonly cpus: string;
  readonly mems: string;
}

export interface HugepageLimit {
  /** For example '2MB'. */
  readonly page_size: string;
  /** In bytes. */
  readonly limit: number;
}

/** Null if it is not set, which is different from 0. */
export type Optional<T> = { readonly value: T } | null;

/** A message to send: what it leaves out stays as it is. */
export type Sent<T> = T extends readonly (infer E)[]
  ? readonly Sent<E>[]
  : T extends object
    ? { readonly [K in keyof T]?: Sent<T[K]> | null | undefined }
    : T;

export interface ContainerAdjustment {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly env?: readonly { readonly key: string; readonly value: string }[];
  readonly linux?: {
    readonly devices?: readonly Sent<LinuxDevice>[];
    readonly resources?: Sent<LinuxResources>;
    /** Only runtimes with NRI 0.12 or newer set it; others skip the field. */
    readonly memory_policy?: MemoryPolicy;
  };
  /** Only runtimes with NRI 0.7 or newer inject them; others skip the field. */
  readonly CDI_devices?: readonly CDIDevice[];
}

/** The memory policy with which a container's program starts; `nodes`: a list as in cpuset(7). */
export interface MemoryPolicy {
  readonly mode: (typeof MemoryPolicyMode)[keyof typeof MemoryPolicyMode];
  readonly nodes: string;
}

/** Of the protocol's modes those that numalign asks for. */
export const MemoryPolicyMode = { BIND: 2 } as const;

export interface ContainerUpdate {
  readonly container_id: string;
  readonly linux: { readonly resources: Sent<LinuxResources> };
  /** Whether the call continues if the runtime cannot update this container. */
  readonly ignore_failure?: boolean;
}

/** What a runtime reports about itself. */
export interface Runtime {
  readonly name: string;
  readonly version: string;
  /** The plugin's configuration file in the runtime's folder; '' without one. */
  readonly config: string;
  /** The version of its NRI; undefined before NRI 0.12. */
  readonly nriVersion: string | undefined;
  /** In milliseconds; undefined before NRI 0.7. */
  readonly registrationTimeout: number | undefined;
  readonly requestTimeout: number | undefined;
}
