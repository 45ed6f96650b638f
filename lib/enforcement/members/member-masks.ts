// What the threads of members have chosen, as files next to their registrations keep it.
import type { NativeMemberChoice, NativeMemberThread } from '../../base/native-threads.js';
import type { Words } from '../../base/words.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { ProcessIdentity } from '../../processes/process-identity.js';
import type { UnpinnedThread } from './confinement.js';

/** What threads have chosen, by process. */
export type MemberChoices = ReadonlyMap<number, readonly NativeMemberChoice[]>;

export const NO_CHOICES: MemberChoices = new Map();

/** What is written down of a process's threads. */
export interface Masks {
  readonly text: string;
  readonly threads: readonly NativeMemberThread[];
}

/** Whether only this is known: the thread was there, so that no other has born it since. */
const isSeen = ({ applied }: NativeMemberThread) => applied.length === 0;

/** Without those of which nothing is known but that they were there. */
export const masked = (threads: readonly NativeMemberThread[]) => threads.filter((thread) => !isSeen(thread));

// Most threads of a process have the same sets.
function once<K, V>(find: (key: K) => V): (key: K) => V {
  const found = new Map<K, V>();
  return (key) => {
    let value = found.get(key);
    if (value === undefined) {
      value = find(key);
      found.set(key, value);
    }
    return value;
  };
}

// A thread: [tid, chosen, applied, and asked where it is not what was applied]
export function encodeMasks(process: string, threads: readonly NativeMemberThread[]): string {
  const textOf = once((words: Words) => `${new CpuSet(words)}`);
  const seen = threads.filter(isSeen).map(({ tid }) => tid);
  const rows = masked(threads).map(({ tid, ...sets }) => {
    const [chosen, applied, asked] = [sets.chosen, sets.applied, sets.asked].map(textOf);
    return asked === applied ? [tid, chosen, applied] : [tid, chosen, applied, asked];
  });
  return JSON.stringify({ process, threads: rows, ...(seen.length > 0 && { seen }) });
}

// What cannot be read is forgotten: threads then keep what they have as their choice.
export function decodeMasks(process: string, text: string): NativeMemberThread[] {
  try {
    const given = JSON.parse(text) as { process: unknown; threads: unknown[]; seen?: unknown[] };
    if (given.process !== process) return [];
    const setOf = once((list: string) => CpuSet.parse(list).words);
    return [...given.threads.map((row) => decodeThread(row, setOf)), ...(given.seen ?? []).map(seenThread)];
  } catch {
    return [];
  }
}

function seenThread(tid: unknown): NativeMemberThread {
  if (!Number.isInteger(tid)) throw new TypeError('not a thread');
  const { words } = CpuSet.EMPTY;
  return { tid: tid as number, chosen: words, applied: words, asked: words };
}

function decodeThread(row: unknown, setOf: (list: string) => Words): NativeMemberThread {
  const [tid, ...lists] = row as [unknown, ...unknown[]];
  const [chosen, applied, asked = applied] = lists.map((list) => setOf(list as string));
  if (!Number.isInteger(tid) || !chosen || !applied || !asked) throw new TypeError('not a thread');
  return { tid: tid as number, chosen, applied, asked };
}

export function withUnpinned(
  known: readonly NativeMemberThread[],
  unpinned: readonly UnpinnedThread[],
): readonly NativeMemberThread[] {
  const isKnown = ({ tid }: NativeMemberThread) => !unpinned.some((thread) => thread.tid === tid);
  return [
    ...known.filter(isKnown),
    ...unpinned.map(({ tid, earlier: { words } }) => ({ tid, chosen: words, applied: words, asked: words })),
  ];
}

export function unpinnedOf(
  { pid }: ProcessIdentity,
  unpinned: readonly UnpinnedThread[],
): readonly UnpinnedThread[] {
  return pid === globalThis.process.pid ? unpinned : [];
}
