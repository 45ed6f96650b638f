// The kernel's own trace (sched_switch): which task ran on which CPU, and when. Root. Times are
// microseconds of the clock of process.hrtime.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { read } from './kernel-view.mjs';

const TRACE = '/sys/kernel/tracing';
const PF_KTHREAD = 0x200000;
const put = (file, text) => writeFileSync(join(TRACE, file), String(text));
const maskOf = (cpus) => cpus.reduce((mask, cpu) => mask | (1n << BigInt(cpu)), 0n).toString(16);

/** Records the tasks that these CPUs switch to, between {@link record} and {@link pause}. */
export function open(cpus) {
  put('tracing_on', 0);
  put('current_tracer', 'nop');
  put('trace_clock', 'mono');
  put('options/record-tgid', 1);
  put('buffer_size_kb', 4096);
  put('tracing_cpumask', maskOf(cpus));
  put('events/sched/sched_switch/enable', 1);
}

/** `all`: the CPUs of the machine. */
export function close(all) {
  put('events/sched/sched_switch/enable', 0);
  put('tracing_cpumask', maskOf(all));
  put('options/record-tgid', 0);
  put('trace_clock', 'local');
  put('buffer_size_kb', 64);
}

export const clear = () => put('trace', '');
export const record = () => put('tracing_on', 1);
export const pause = () => put('tracing_on', 0);

export const now = () => Number(process.hrtime.bigint() / 1_000n);

/** Events of these CPUs that did not fit into the buffer. */
export const lost = (cpus) =>
  cpus.reduce(
    (sum, cpu) => sum + Number(/^overrun: (\d+)$/m.exec(read(TRACE, `per_cpu/cpu${cpu}/stats`))[1]),
    0,
  );

const SWITCH =
  /\[(\d+)\] \S+ +(\d+)\.(\d+): sched_switch: prev_comm=(.*?) prev_pid=(\d+) .* ==> next_comm=(.*?) next_pid=(\d+) /g;

/** Every switch: from which task to which, each `[command, tid]`. */
export function switches() {
  return [...readFileSync(join(TRACE, 'trace'), 'utf8').matchAll(SWITCH)].map(
    ([, cpu, seconds, micros, ...tasks]) => ({
      cpu: Number(cpu),
      at: Number(seconds) * 1e6 + Number(micros),
      from: [tasks[0], tasks[1]],
      to: [tasks[2], tasks[3]],
    }),
  );
}

/**
 * Each run of a task on a CPU between two switches: `{ cpu, command, tid, pid, from, to }`, without
 * idle ones.
 */
export function runs() {
  const pids = new Map(
    read(TRACE, 'saved_tgids')
      .split('\n')
      .map((line) => line.trim().split(/\s+/)),
  );
  const last = new Map();
  const all = [];
  for (const { cpu, at, from } of switches()) {
    const begin = last.get(cpu);
    // A task that ran when the record began is counted from that moment.
    const [command, tid] = from;
    all.push({ cpu, command, tid, pid: Number(pids.get(tid)), from: begin ?? at, to: at });
    last.set(cpu, at);
  }
  return all.filter(({ tid }) => tid !== '0');
}

/** Kernel threads by tid. */
function kernelThreads() {
  const tids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return tids.filter((tid) => {
    try {
      const stat = readFileSync(`/proc/${tid}/stat`, 'utf8');
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[9 - 3]) & PF_KTHREAD;
    } catch {
      return false; // it has ended
    }
  });
}

/** Returns a function that says if a task was the kernel's at the time of this call. */
export function kernelTasks() {
  const tids = new Set(kernelThreads());
  return (command, tid) => tids.has(tid) || /^kworker\//.test(command);
}
