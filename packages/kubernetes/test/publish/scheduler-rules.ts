// What NodeResourceTopologyMatch of the scheduler plugins reads in a NodeResourceTopology, by its
// documentation ("Topology Manager configuration") and the limits that it checks.
import type { Stored } from './topologies.js';

const POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'];
const SCOPES = ['container', 'pod'];
const MOST_ZONE = 63;

const attributeIn = ({ attributes }: Stored, name: string): string | undefined =>
  attributes.find((attribute: { name: string }) => attribute.name === name)?.value;

export const fingerprintIn = (object: Stored) => attributeIn(object, 'nodeTopologyPodsFingerprint');

/** What it would skip or misread; empty if it reads everything. */
export function flawsForScheduler(object: Stored): string[] {
  const names = object.zones.map(({ name }: { name: string }) => name);
  const limit = attributeIn(object, 'topologyManagerMaxNUMANodes') ?? '';
  const fingerprint = fingerprintIn(object);
  const rules: [flaw: string, holds: boolean][] = [
    ['an unknown policy', POLICIES.includes(attributeIn(object, 'topologyManagerPolicy') ?? '')],
    ['an unknown scope', SCOPES.includes(attributeIn(object, 'topologyManagerScope') ?? '')],
    // A score is 100 less 100 / limit for each NUMA node.
    ['a useless limit', /^\d+$/.test(limit) && Number(limit) > 1 && names.length <= Number(limit)],
    ['too large a limit', Number(limit) <= 1024],
    [
      'an unreadable zone',
      names.every((name: string) => Number(/^node-(\d+)$/.exec(name)?.[1]) <= MOST_ZONE),
    ],
    // A missing cost counts as 255.
    ['a zone without costs', object.zones.every(({ costs }: Stored) => sameNames(costs, names))],
    [
      'attributes twice',
      new Set(object.attributes.map(({ name }: any) => name)).size === object.attributes.length,
    ],
    ['without a fingerprint', fingerprint !== undefined],
    ['an unreadable fingerprint', fingerprint === undefined || /^pfp0v001[0-9a-f]{16}$/.test(fingerprint)],
  ];
  return rules.filter(([, holds]) => !holds).map(([flaw]) => flaw);
}

const sameNames = (costs: readonly { name: string }[] | undefined, names: readonly string[]) =>
  costs !== undefined && names.every((name) => costs.some((cost) => cost.name === name));
