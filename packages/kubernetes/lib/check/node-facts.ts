// NodeFacts: what can be seen of a node, before any judgement.
import type { Neighbour } from '../neighbours/neighbours.js';

/** A socket, as a client finds it. */
export interface SocketFacts {
  readonly path: string;
  /** `listens`: a server answers. `refused`: the file exists, but no server listens. */
  readonly state: 'listens' | 'refused' | 'absent' | 'forbidden' | 'no-socket';
}

export interface RuntimeFacts {
  /** The runtime's own name, such as `containerd`. */
  readonly name: string;
  readonly version: string;
}

export interface CgroupFacts {
  readonly version: 1 | 2;
  /** With v2, the controllers of the root; with v1, the mounted ones. */
  readonly controllers: readonly string[];
  /** Whether they list the processes of containers; see areProcessesHidden. */
  readonly areProcessesHidden: boolean;
}

export interface KubeletFacts {
  readonly folder: string;
  /** Whether the folder exists. */
  readonly exists: boolean;
  /** Null if there is no file; an error's text if it cannot be read. */
  readonly cpuPolicy: string | null | { readonly error: string };
  readonly memoryPolicy: string | null | { readonly error: string };
  readonly devicePlugins: SocketFacts;
  readonly podResources: SocketFacts;
  /** True if systemd has a unit for it. */
  readonly isService: boolean;
}

/** What the API server says to the agent. */
export interface ClusterFacts {
  readonly nodeName: string;
  readonly publishes: boolean;
  /** Null if it answers. */
  readonly failure: { readonly code: string; readonly message: string } | null;
  /** Whether there is a Node object with the name; null if it may not be read. */
  readonly hasNode: boolean | null;
  /** Verbs that RBAC does not allow, such as `create noderesourcetopologies`. */
  readonly missingVerbs: readonly string[];
  readonly hasDefinition: boolean;
}

export interface NodeFacts {
  /** Programs that place CPUs of containers, too, or may. */
  readonly neighbours: readonly Neighbour[];
  /** The name of numalign's plugin. */
  readonly pluginName: string;
  /** The plugins without which containerd creates no container. */
  readonly requiredPlugins: readonly string[];
  /** Null if the runtime and the kubelet place containers. */
  readonly nri: SocketFacts | null;
  readonly runtime: SocketFacts;
  /** Null if it does not say, or was not asked. */
  readonly runtimeVersion: RuntimeFacts | null;
  /** What containerd's configuration says about NRI; null if nothing, or if it cannot be read. */
  readonly isNriDisabled: boolean | null;
  readonly configuration: string;
  readonly cgroups: CgroupFacts;
  readonly kubelet: KubeletFacts;
  /** Why the folder cannot be used; null if it can. */
  readonly stateFolder: { readonly path: string; readonly refusal: string | null };
  readonly user: number;
  /** Null if nothing is published. */
  readonly cluster: ClusterFacts | null;
}
