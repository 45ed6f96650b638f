// SharedDomains: the parts of the shared pool that rules bind containers to: a NUMA node's, or an L3
// group's. A pod stays in one.
import type { CpuSet, ManagerView } from 'numalign';
import type { PodSandbox } from '../nri/messages.js';
import type { ContainerRequest } from '../placement/container-request.js';
import type { Inventory } from './inventory.js';

export interface SharedDomainsOptions {
  readonly manager: Pick<ManagerView, 'topology' | 'sharedPool'>;
  readonly inventory: Inventory;
}

// What asks for nothing runs too.
const LEAST_MILLIS = 10;

export class SharedDomains {
  readonly #options: SharedDomainsOptions;

  constructor(options: SharedDomainsOptions) {
    this.#options = options;
  }

  /**
   * The CPUs that a shared container's rule binds it to: those of its pod's other containers with
   * this rule, else where the least CPU time is requested for each CPU. Null: all.
   */
  choose({ id: podId }: PodSandbox, { rule }: Pick<ContainerRequest, 'rule'>): CpuSet | null {
    if (!rule?.pool) return rule?.cpus ?? null;
    const { manager, inventory } = this.#options;
    const { topology } = manager;
    const groups = rule.pool === 'numa-node' ? topology.nodes : topology.l3Groups;
    const pool = manager.sharedPool();
    const domains = groups
      .map(({ cpus }) => (rule.cpus ? cpus.intersection(rule.cpus) : cpus))
      .filter((cpus) => cpus.intersects(pool));
    const isOf = (cpus: CpuSet) => (domain: CpuSet) => domain.equals(cpus);
    const own = inventory.ofPod(podId).flatMap(({ request }) => {
      return request.rule?.name === rule.name && request.chosenCpus ? [request.chosenCpus] : [];
    });
    const ofPod = domains.find((domain) => own.some(isOf(domain)));
    if (ofPod) return ofPod;
    const loads = domains.map((domain) => ({ domain, load: this.#load(domain, pool) }));
    return loads.sort((a, b) => a.load - b.load)[0]?.domain ?? rule.cpus ?? null;
  }

  /** The CPU time that is requested there, for each CPU. */
  #load(domain: CpuSet, pool: CpuSet): number {
    const millis = this.#options.inventory.containers
      .filter(({ request }) => request.chosenCpus?.equals(domain))
      .reduce((sum, { request }) => sum + Math.max(request.millis, LEAST_MILLIS), 0);
    return millis / domain.intersection(pool).size;
  }
}
