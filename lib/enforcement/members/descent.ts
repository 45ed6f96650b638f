// Descent: whether a process is on a grant's CPUs because the grant's owner started it.
import { readdirSync } from 'node:fs';
import type { OwnerRecord } from '../../account/pod-assignment.js';
import { ENVIRONMENT } from '../../base/collections/registry.js';
import { linkOf, textOf, throwIfExhausted } from '../../base/errors.js';
import { hasEnded, isProcOurs, statOf } from '../../processes/process-identity.js';

/**
 * Whether a process is the owner itself: it has the owner's lock open. If that cannot be seen, its
 * pid decides.
 */
export function isHolder({ pid: owner, uuid }: OwnerRecord, pid: number): boolean {
  return owner === pid && hasOpen(pid, `/owners/${uuid}`) !== false;
}

/**
 * Whether an owner, or one of its descendants, started a process: it inherited the owner's lock, or
 * its chain of parents leads to a process that has the lock open. Another process may have the
 * owner's pid: later, or in another pid namespace.
 */
export function isStartedBy({ pid: owner, uuid }: OwnerRecord, pid: number): boolean {
  return [pid, ...parentsOf(pid)].some((each) => hasOpen(each, `/owners/${uuid}`) ?? each === owner);
}

/** The copy of an owner's lock that this process inherited. */
export function inheritedLock({ uuid }: OwnerRecord): number | undefined {
  const fd = openAs('/proc/self/fd', `/owners/${uuid}`);
  return fd === undefined ? undefined : Number(fd);
}

// The descriptor of a file in a folder /proc/PID/fd. Throws if that is closed to this process.
const openAs = (folder: string, file: string) =>
  readdirSync(folder).find((fd) => linkOf(`${folder}/${fd}`).endsWith(file));

// Of the threads of a process, some of which end meanwhile. Some kernels have no file of children.
const READINGS = 4;

/** The living children of a process. proc(5) lists them by the thread that started them. */
export function childrenOf(pid: number): number[] {
  const all = new Set<number>();
  try {
    // The children of a thread that ends become those of another, which may have been read already.
    for (let reading = 0, isWhole = false; reading < READINGS && !isWhole; reading++) {
      const lists = readdirSync(`/proc/${pid}/task`).map((tid) =>
        textOf(`/proc/${pid}/task/${tid}/children`),
      );
      for (const child of lists.flatMap((list) => list?.split(' ') ?? [])) if (child) all.add(Number(child));
      isWhole = !lists.includes(undefined);
    }
  } catch (error) {
    throwIfExhausted(error);
    // The process has ended.
  }
  return [...all];
}

/**
 * The parents of a process, the nearest first; the last is the first process of its pid namespace. An
 * orphan has another parent. proc(5): the 4th field.
 */
export function parentsOf(pid: number): number[] {
  const parents: number[] = [];
  try {
    for (let at = Number(statOf(pid).parent); at > 0 && !parents.includes(at); at = Number(statOf(at).parent))
      parents.push(at);
  } catch {
    // One of them has ended in the meantime.
  }
  return parents;
}

// Where files were last found open. Each link is read again before it counts, since the process may
// have closed the file.
const newLinks = () => new Map<string, string>();
const MOST_LINKS = 1024;

// Undefined if this process may not look, or /proc does not show it.
export function hasOpen(pid: number, file: string): boolean | undefined {
  const folder = `/proc/${pid}/fd`;
  if (!isProcOurs()) return undefined;
  const links = ENVIRONMENT.of(newLinks);
  const key = `${pid}${file}`;
  const last = links.get(key);
  if (last !== undefined && linkOf(last).endsWith(file)) return true;
  try {
    const found = openAs(folder, file);
    if (links.size === MOST_LINKS) links.clear();
    if (found === undefined) links.delete(key);
    else links.set(key, `${folder}/${found}`);
    return found !== undefined;
  } catch {
    return hasEnded(pid) ? false : undefined;
  }
}
