// Processes in /proc: their masks, their stops, and those that a run has left behind.
import { readdirSync, readFileSync } from 'node:fs';
import { parseList } from './state-file.mjs';

/** In the environment of everything that a run starts. */
export const MARK = 'NUMALIGN_TORTURE';

// A process may end while it is read.
function read(path) {
  try {
    return readFileSync(path, 'latin1');
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES'].includes(error.code)) return '';
    throw error;
  }
}

function list(path) {
  try {
    return readdirSync(path);
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes(error.code)) return [];
    throw error;
  }
}

/** The threads of a process: { tid, state, cpus }, as the kernel has them. */
export function threadsOf(pid) {
  return list(`/proc/${pid}/task`).flatMap((tid) => {
    const status = read(`/proc/${pid}/task/${tid}/status`);
    const [, state] = /^State:\s*(\S)/m.exec(status) ?? [];
    const [, cpus] = /^Cpus_allowed_list:\s*(.*)$/m.exec(status) ?? [];
    return cpus === undefined ? [] : [{ tid: Number(tid), state, cpus: parseList(cpus) }];
  });
}

// Such a thread has ended: it runs nowhere, though the kernel shows its mask until its parent reaps
// it.
const hasEnded = ({ state }) => ['Z', 'X'].includes(state);

/** True if every thread is stopped by a signal, or the process has ended. */
export const standsStill = (pid) => livingThreadsOf(pid).every(({ state }) => ['T', 't'].includes(state));

/** Like {@link threadsOf}, without threads that have ended. */
export const livingThreadsOf = (pid) => threadsOf(pid).filter((thread) => !hasEnded(thread));

/** True if it is about to end: its environment is gone, though it may still have its locks. */
export const isEnding = (pid) => livingThreadsOf(pid).length > 0 && read(`/proc/${pid}/environ`) === '';

/** The only child of a process; undefined while it has none. */
export function childOf(pid) {
  const [child] = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean);
  return child === undefined ? undefined : Number(child);
}

/** Processes that carry the mark of a run. */
export function marked(run) {
  return list('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => read(`/proc/${name}/environ`).split('\0').includes(`${MARK}=${run}`))
    .map(Number);
}

/** Sends a signal; a process that has ended gets none. */
export function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
