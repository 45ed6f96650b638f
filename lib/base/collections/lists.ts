// Lists that are made bit by bit.

/**
 * The list with one more at its end: the same list, but for an empty one, which stays as it is. A list
 * that is made with its first member takes a fifth of one that it is added to.
 */
export function withLast<T>(list: readonly T[], last: T): T[] {
  if (list.length === 0) return [last];
  (list as T[]).push(last);
  return list as T[];
}
