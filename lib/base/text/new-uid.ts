// New uids: random UUIDs of version 4.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';

const KERNEL_FILE = '/proc/sys/kernel/random/uuid';
const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

// More than a program needs that pins itself, and then works.
let fromKernel = 4;

/**
 * A new uid. The first come from the kernel, see random(4): reading its file is slower than
 * node:crypto, but that takes 2 ms to load.
 */
export function newUid(): string {
  const uid = fromKernel-- > 0 ? uidOfKernel() : '';
  return UUID.test(uid) ? uid : randomUUID();
}

function uidOfKernel(): string {
  try {
    return readFileSync(KERNEL_FILE, 'utf8').trimEnd();
  } catch {
    return '';
  }
}
