// The types of memory by their Kubernetes names: `memory`, and those like `hugepages-2Mi`.
import { parseQuantity, UNIT } from './quantity.js';

/** Ordinary memory. */
export const MEMORY = 'memory';

const HUGEPAGES = 'hugepages-';
const UNITS = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'];

/** True for `memory` and for hugepages of any size. */
export function isMemoryType(resource: string): boolean {
  return resource === MEMORY || resource.startsWith(HUGEPAGES);
}

/** Bytes as a quantity: 2097152 is `2Mi`. */
export function binaryBytes(bytes: number): string {
  let [amount, unit] = [bytes, 0];
  while (amount > 0 && amount % 1024 === 0 && unit < UNITS.length - 1)
    [amount, unit] = [amount / 1024, unit + 1];
  return `${amount}${UNITS[unit]}`;
}

/** The type of hugepages of this many bytes: 2097152 is `hugepages-2Mi`. */
export const hugepageType = (bytes: number): string => `${HUGEPAGES}${binaryBytes(bytes)}`;

/** The name that `hugepages-2M` stands for, or a common one. */
export const binaryName = (type: string): string =>
  /^hugepages-\d+[kMGT]$/.test(type) ? `${type.replace('k', 'K')}i` : 'hugepages-2Mi';

/** The bytes of one hugepage; undefined for any other type. */
export function pageBytes(type: string): number | undefined {
  if (!type.startsWith(HUGEPAGES)) return undefined;
  try {
    const bytes = parseQuantity(type.slice(HUGEPAGES.length), type);
    return bytes > 0n && bytes % UNIT === 0n ? Number(bytes / UNIT) : undefined;
  } catch {
    return undefined;
  }
}
