// NodeFacts: what can be seen of a node, before anybody judges it.

/** A socket, as a client finds it. */
export interface SocketFacts {
  readonly path: string;
  /** `listens`: somebody answers. `refused`: the file is there, and nobody. */
  readonly state: 'listens' | 'refused' | 'absent' | 'forbidden' | 'no-socket';
}

export interface RuntimeFacts {
  /** As the runtime calls itself, such as `containerd`. */
  readonly name: string;
  readonly version: string;
}

export interface CgroupFacts {
  readonly version: 1 | 2;
  /** Of v2: the controllers of the root; of v1: those that are mounted. */
  readonly controllers: readonly string[];
}

export interface KubeletFacts {
  readonly folder: string;
  /** Whether there is such a folder. */
  readonly exists: boolean;
  /** null: no file; an error's text where it cannot be read. */
  readonly cpuPolicy: string | null | { readonly error: string };
  readonly memoryPolicy: string | null | { readonly error: string };
  readonly devicePlugins: SocketFacts;
  readonly podResources: SocketFacts;
  /** systemd has a unit of it. */
  readonly isService: boolean;
}

/** What the API server says to a publisher. */
export interface ClusterFacts {
  readonly nodeName: string;
  /** null: it answers. */
  readonly failure: { readonly code: string; readonly message: string } | null;
  /** Whether there is a Node object of the name; null: it may not be read. */
  readonly hasNode: boolean | null;
  /** Verbs that RBAC does not allow, such as `create noderesourcetopologies`. */
  readonly missingVerbs: readonly string[];
  readonly hasDefinition: boolean;
}

export interface NodeFacts {
  /** null: containers are left to the runtime and the kubelet. */
  readonly nri: SocketFacts | null;
  readonly runtime: SocketFacts;
  /** null: it does not say, or was not asked. */
  readonly runtimeVersion: RuntimeFacts | null;
  /** What containerd's configuration says of NRI; null: nothing, or it cannot be read. */
  readonly isNriDisabled: boolean | null;
  readonly configuration: string;
  readonly cgroups: CgroupFacts;
  readonly kubelet: KubeletFacts;
  /** Why the folder cannot be used; null: it can. */
  readonly stateFolder: { readonly path: string; readonly refusal: string | null };
  readonly user: number;
  /** null: nothing is published. */
  readonly cluster: ClusterFacts | null;
}
