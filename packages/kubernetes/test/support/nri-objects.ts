// Pods and containers in the runtime's form.
import { type Container, ContainerState, type PodSandbox } from '../../lib/nri/messages.js';

const POD = {
  id: 'p1',
  name: 'web',
  uid: 'u1',
  namespace: 'default',
  labels: {},
  annotations: {},
  runtime_handler: '',
};

export function podOf({
  cgroupParent = '/',
  ...fields
}: Partial<PodSandbox> & { readonly cgroupParent?: string } = {}): PodSandbox {
  return { ...POD, linux: { cgroup_parent: cgroupParent }, ...fields } as PodSandbox;
}

export interface ContainerFields extends Partial<Container> {
  /** Of quota and shares. */
  readonly cpus?: number;
  readonly shares?: number;
  readonly quota?: number;
  /** Bytes. */
  readonly memory?: number;
  readonly hugepages?: Readonly<Record<string, number>>;
  readonly cpuset?: string;
}

const PERIOD = 100_000;
const message = (value: number | undefined) => (value === undefined ? null : { value });

export function containerOf({
  cpus,
  shares = cpus === undefined ? undefined : 1024 * cpus,
  quota = cpus === undefined ? undefined : PERIOD * cpus,
  memory,
  hugepages = {},
  cpuset = '',
  ...fields
}: ContainerFields = {}): Container {
  return {
    id: 'c1',
    pod_sandbox_id: 'p1',
    name: 'main',
    state: ContainerState.CREATED,
    labels: {},
    annotations: {},
    env: [],
    linux: {
      cgroups_path: `/k/${fields.id ?? 'c1'}`,
      resources: {
        cpu: {
          shares: message(shares),
          quota: message(quota),
          period: message(quota === undefined ? undefined : PERIOD),
          cpus: cpuset,
          mems: '',
        },
        memory: { limit: message(memory) },
        hugepage_limits: Object.entries(hugepages).map(([page_size, limit]) => ({ page_size, limit })),
      },
    },
    ...fields,
  } as unknown as Container;
}

export function thrownBy(call: () => unknown): unknown {
  try {
    call();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
