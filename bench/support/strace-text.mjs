// Reads the output of strace -f: the system calls of a process between two marks, or of all processes.

// Threads use these to wait for each other, and V8 to get memory and read clocks.
const OWN_OF_NODE =
  /^(futex|epoll_\w+|poll|eventfd2|madvise|mmap|munmap|mprotect|brk|sched_yield|gettid|getpid|rt_sig\w+|clock_\w+|membarrier|restart_syscall|exit\w*)$/;

const LINE = /^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()/;
const MARK = /^(\d+) +write\(\d+, "(begin ([^"]*)|end)"/;

/**
 * How often each call was made in each operation: a list of maps by the operation's name, one for
 * each time. A mark is a write of `begin NAME` or `end`. Everything belongs to the first process of
 * the log: its threads are those made by its threads with CLONE_THREAD.
 */
export function callsOf(text) {
  const operations = new Map();
  const own = new Set();
  let current;
  for (const line of text.split('\n')) {
    const mark = MARK.exec(line);
    if (mark) {
      const [, , what, name] = mark;
      current = undefined;
      if (what === 'end') continue;
      current = new Map();
      operations.set(name, [...(operations.get(name) ?? []), current]);
      continue;
    }
    const found = LINE.exec(line);
    if (!found) continue;
    const [, thread, , call] = found;
    if (own.size === 0) own.add(thread);
    const born = /CLONE_THREAD/.test(line) ? / = (\d+)$/.exec(line) : undefined;
    if (born && own.has(thread)) own.add(born[1]);
    // A resumed call was counted where it began.
    if (call === undefined || current === undefined || !own.has(thread) || OWN_OF_NODE.test(call)) continue;
    current.set(call, (current.get(call) ?? 0) + 1);
  }
  return operations;
}

const END = /^(\d+) +\+\+\+ /;

/** How many calls were made until the first process of the log ended, and by what it left running. */
export function callsUntilEnd(text) {
  const counts = { calls: 0, leftCalls: 0 };
  let first;
  let hasEnded = false;
  for (const line of text.split('\n')) {
    const [, process, , call] = LINE.exec(line) ?? [];
    first ??= process;
    hasEnded ||= END.exec(line)?.[1] === first;
    // A resumed call was counted where it began.
    if (call !== undefined) counts[hasEnded ? 'leftCalls' : 'calls']++;
  }
  return counts;
}
