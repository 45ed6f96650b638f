// PodFingerprint: a hash of a node's pods. A scheduler that has reserved resources for pods
// compares it with its own: if they agree, the published amounts include all of these pods. Pure.
import { xxhash64 } from './xxhash64.js';

const FINGERPRINT_ATTRIBUTE = 'nodeTopologyPodsFingerprint';
/** What older schedulers read. */
export const FINGERPRINT_ANNOTATION = 'topology.node.k8s.io/fingerprint';
const METHOD_ATTRIBUTE = 'nodeTopologyPodsFingerprintMethod';

/** What a pod adds: the hash of its name, seeded with that of its namespace. */
export const hashOfPod = (namespace: string, name: string): bigint =>
  xxhash64(Buffer.from(name), xxhash64(Buffer.from(namespace)));

/** The fingerprint of pods in any order: version 1 of k8stopologyawareschedwg/podfingerprint. */
export function podFingerprint(hashes: Iterable<bigint>): string {
  const sorted = BigUint64Array.from(hashes).sort();
  const bytes = Buffer.alloc(8 * sorted.length);
  for (const [i, hash] of sorted.entries()) bytes.writeBigUInt64LE(hash, 8 * i);
  return `pfp0v001${xxhash64(bytes).toString(16).padStart(16, '0')}`;
}

/** The attributes for a fingerprint; it is of all pods, those without exclusive resources, too. */
export const fingerprintAttributes = (fingerprint: string) => [
  { name: FINGERPRINT_ATTRIBUTE, value: fingerprint },
  { name: METHOD_ATTRIBUTE, value: 'all' },
];
