// ClaimedPod: a pod whose containers have their CPUs from claims, and so none of their own. Pure.
import type { Allocated } from '@numalign/claims';
import { parsePod, parseQuantity } from 'numalign/tools';
import type { FilePod } from '../arguments/pod-file.js';
import { type Fields, fieldsOf, listOf } from '../gate/findings.js';

/** A claim of a pod that has devices of numalign. */
export interface PlannedClaim {
  /** As the pod names it. */
  readonly name: string;
  readonly results: readonly Allocated[];
}

/** A pod as it is planned beside its claims. */
export interface SharingPod {
  readonly pod: FilePod;
  /** The claims that containers have their CPUs from, by the names of the containers. */
  readonly claimOf: ReadonlyMap<string, string>;
}

/** Containers with CPUs of a claim are planned without whole CPUs of their own: once is enough. */
export function sharingContainers(
  pod: FilePod,
  claims: readonly PlannedClaim[],
  note: (text: string) => void,
): SharingPod {
  const withCpus = new Set(
    claims
      .filter(({ results }) => results.some(({ device }) => device.capacity.has('cpu')))
      .map(({ name }) => name),
  );
  const manifest = pod.spec as Fields;
  const { containers, ...rest } = fieldsOf(manifest.spec);
  const claimOf = new Map<string, string>();
  const shared = listOf(containers).map((each) => {
    const container = fieldsOf(each);
    const { claims: used, limits, requests } = fieldsOf(container.resources);
    const claim = listOf(used).find(({ name }: any) => withCpus.has(name));
    const cpu = fieldsOf(limits).cpu;
    if (claim) claimOf.set(String(container.name), String(fieldsOf(claim).name));
    if (!claim || cpu === undefined || parseQuantity(cpu, 'cpu') % 10n ** 9n !== 0n) return each;
    note(
      `${pod.place}: warning: container ${container.name} has its CPUs from claim ${fieldsOf(claim).name}, and not ${cpu} of its own besides`,
    );
    const less = (amounts: unknown) =>
      Object.hasOwn(fieldsOf(amounts), 'cpu') ? { ...fieldsOf(amounts), cpu: withoutAMilli(cpu) } : amounts;
    const resources = { ...fieldsOf(container.resources), limits: less(limits), requests: less(requests) };
    return { ...container, resources };
  });
  if (claimOf.size === 0) return { pod, claimOf };
  const spec = { ...manifest, spec: { ...rest, containers: shared } } as unknown as FilePod['spec'];
  return { pod: { ...pod, spec, request: parsePod(spec) }, claimOf };
}

// A fraction of a CPU is of the shared pool, and keeps the QoS class.
const withoutAMilli = (cpu: unknown) => `${parseQuantity(cpu, 'cpu') / 10n ** 6n - 1n}m`;
