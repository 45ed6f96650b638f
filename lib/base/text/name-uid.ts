// The uid of what is known by its name: the same wherever and whenever it is asked for. Pure.
import { createHash } from 'node:crypto';

// The namespace of RFC 9562 in which the names are. It is part of what users may compute themselves:
// docs/admission.md has it.
const NAMESPACE = 'bd019656-8b31-45cc-a38f-52367694c5d5';

/** Of the pod of this name, as `namespace/name`: a UUID of version 5. */
export function nameUid(namespace: string, name: string): string {
  const space = Buffer.from(NAMESPACE.replaceAll('-', ''), 'hex');
  const bytes = createHash('sha1').update(space).update(`${namespace}/${name}`).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x50;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
