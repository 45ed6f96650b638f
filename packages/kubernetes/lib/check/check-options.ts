// CheckOptions: what to check, and where it is.
import type { ApiServer } from '../api-server/api-server.js';
import type { NeighbourPlaces } from '../neighbours/neighbours.js';
import type { RefusalMode } from '../refusals/refusals.js';

export interface CheckOptions {
  /**
   * Null: the runtime and the kubelet place containers, and what numalign needs for that is not
   * checked. Default: /var/run/nri/nri.sock.
   */
  readonly nriSocket?: string | null;
  /** The name of numalign's plugin at the runtime. Default: numalign. */
  readonly pluginName?: string;
  /** The runtime's CRI socket, with or without `unix://`. Default: containerd's or CRI-O's. */
  readonly runtimeEndpoint?: string;
  /** Default: /etc/containerd/config.toml. */
  readonly containerdConfiguration?: string;
  /** Default: /var/lib/kubelet. */
  readonly kubeletFolder?: string;
  /** Default: /run/numalign. */
  readonly stateDir?: string;
  /** Where other programs that place CPUs are looked for. Default: this machine's. */
  readonly neighbours?: Omit<NeighbourPlaces, 'socketPath'>;
  /** Where the cgroups are mounted. Default: /sys/fs/cgroup. */
  readonly cgroupMount?: string;
  /** Also checks what publishing needs at the API server. */
  readonly publish?: OfCluster;
  /** Also checks what the answer to refusals needs there. */
  readonly refusals?: OfCluster & { readonly mode: RefusalMode };
  /** Also checks what devices for claims need there. */
  readonly claims?: OfCluster;
}

export interface OfCluster {
  /** Default: that of the cluster this process is in. */
  readonly apiServer?: Pick<ApiServer, 'get' | 'list' | 'create'>;
  readonly nodeName: string;
}
