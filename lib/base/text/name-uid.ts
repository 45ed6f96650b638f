// The uid of a pod without one: a function of its name. Pure.
import { createHash } from 'node:crypto';

// The RFC 9562 namespace of these names. Users may compute a uid themselves: see docs/admission.md.
const NAMESPACE = 'bd019656-8b31-45cc-a38f-52367694c5d5';

/** The UUID of version 5 of `namespace/name`. */
export function nameUid(namespace: string, name: string): string {
  const space = Buffer.from(NAMESPACE.replaceAll('-', ''), 'hex');
  const bytes = createHash('sha1').update(space).update(`${namespace}/${name}`).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x50;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
