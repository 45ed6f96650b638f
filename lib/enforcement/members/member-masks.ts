// What the threads of members have chosen, as stored in files next to their registrations.
import type { NativeAskedMask, NativeMemberThread } from '../../base/native-threads.js';
import type { Words } from '../../base/words.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { ProcessIdentity } from '../../processes/process-identity.js';
import type { UnpinnedThread } from './confinement.js';

/** What threads have chosen, by pid. */
export type AskedMasks = ReadonlyMap<number, readonly NativeAskedMask[]>;

export const NO_CHOICES: AskedMasks = new Map();

/** True if the record only says that the thread existed, so no later thread is its parent. */
const isBare = ({ applied }: NativeMemberThread) => applied.length === 0;

/** The threads of which more is known than that they existed. */
export const masked = (threads: readonly NativeMemberThread[]) => threads.filter((thread) => !isBare(thread));

// Most threads of a process have the same sets.
function memoize<K, V>(find: (key: K) => V): (key: K) => V {
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

// A row is [tid, chosen, applied], and `asked` if it differs from `applied`.
export function encodeMasks(process: string, threads: readonly NativeMemberThread[]): string {
  const textOf = memoize((words: Words) => `${new CpuSet(words)}`);
  const bareThreads = threads.filter(isBare).map(({ tid }) => tid);
  const rows = masked(threads).map(({ tid, ...sets }) => {
    const [choice, mask, request] = [sets.chosen, sets.applied, sets.asked].map(textOf);
    return request === mask ? [tid, choice, mask] : [tid, choice, mask, request];
  });
  return JSON.stringify({ process, threads: rows, ...(bareThreads.length > 0 && { seen: bareThreads }) });
}

// An unreadable record is dropped: threads then keep their current masks as their choice.
export function decodeMasks(process: string, text: string): NativeMemberThread[] {
  try {
    const record = JSON.parse(text) as { process: unknown; threads: unknown[]; seen?: unknown[] };
    if (record.process !== process) return [];
    const setOf = memoize((list: string) => CpuSet.parse(list).words);
    return [...record.threads.map((row) => decodeThread(row, setOf)), ...(record.seen ?? []).map(bareThread)];
  } catch {
    return [];
  }
}

function bareThread(tid: unknown): NativeMemberThread {
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
  threads: readonly NativeMemberThread[],
  unpinned: readonly UnpinnedThread[],
): readonly NativeMemberThread[] {
  const isUnchanged = ({ tid }: NativeMemberThread) => !unpinned.some((thread) => thread.tid === tid);
  return [
    ...threads.filter(isUnchanged),
    ...unpinned.map(({ tid, earlier: { words } }) => ({ tid, chosen: words, applied: words, asked: words })),
  ];
}

export function unpinnedOf(
  { pid }: ProcessIdentity,
  unpinned: readonly UnpinnedThread[],
): readonly UnpinnedThread[] {
  return pid === globalThis.process.pid ? unpinned : [];
}
