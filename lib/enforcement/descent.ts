// Descent: who lives on a grant's CPUs because its owner has started him.
import { readdirSync, readlinkSync } from 'node:fs';
import type { OwnerRecord } from '../state/assignments.js';
import { statOf } from '../state/process-identity.js';

/** Whether a process was started by an owner, or by what that has started: it has inherited the owner's lock, or its parents lead there. */
export function isStartedBy({ pid: owner, uuid }: OwnerRecord, pid: number): boolean {
  return parentsOf(pid).includes(owner ?? 0) || hasOpen(pid, `/owners/${uuid}`);
}

// proc(5): the parent is the 4th field. Those whose parents have ended have another.
function parentsOf(pid: number): number[] {
  const parents: number[] = [];
  try {
    for (let at = Number(statOf(pid).parent); at > 1 && !parents.includes(at); at = Number(statOf(at).parent))
      parents.push(at);
  } catch {
    // One of them has ended meanwhile.
  }
  return parents;
}

function hasOpen(pid: number, file: string): boolean {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((fd) => linkOf(`${folder}/${fd}`).endsWith(file));
  } catch {
    // It has ended, or is somebody else's.
    return false;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
