// KernelWork: kernel work on CPUs that only the command line or a machine-wide setting can change.
// numalign reports it and changes nothing.

import { unlessRefused } from '../base/errors.js';
import { cpusNamed } from '../base/text/cpus-named.js';
import { CpuSet } from '../machine/cpu-set.js';
import { type KernelFiles, visibleFiles } from './kernel/kernel-files.js';

/** Settings that numalign does not change. Undefined: hidden, or not understood. */
export interface KernelSettings {
  /**
   * CPUs without the timer tick while only one thread runs there (nohz_full=); null if this kernel
   * cannot stop it (CONFIG_NO_HZ_FULL).
   */
  readonly tickless: CpuSet | null | undefined;
  /** CPUs whose RCU callbacks run in threads that can be on any CPU (rcu_nocbs=, nohz_full=). */
  readonly offloaded: CpuSet | undefined;
  /** Where transparent hugepages are used: `always`, `madvise`, `never`. */
  readonly hugepages: string | undefined;
  /** When a page fault waits for memory compaction: `always`, `madvise`, `defer` or others. */
  readonly compaction: string | undefined;
}

/** One kind of work on CPUs. */
export interface KernelWork {
  readonly found: string;
  /** What to boot with, or to set. */
  readonly advice: string;
}

const HUGEPAGES = '/sys/kernel/mm/transparent_hugepage';
const CPUS = '/sys/devices/system/cpu';

/**
 * Reads Documentation/admin-guide/kernel-parameters.txt,
 * Documentation/admin-guide/mm/transhuge.rst. A file that this process may not read counts as
 * hidden.
 */
export function readKernelSettings(files: KernelFiles): KernelSettings {
  const { read } = visibleFiles(files);
  const possible = read(`${CPUS}/possible`);
  const tickless = possible === undefined ? undefined : ticklessIn(read(`${CPUS}/nohz_full`));
  return {
    tickless,
    offloaded: offloadedCpus(read('/proc/cmdline'), tickless, possible),
    hugepages: selectedIn(read(`${HUGEPAGES}/enabled`)),
    compaction: selectedIn(read(`${HUGEPAGES}/defrag`)),
  };
}

const parseList = (text: string): CpuSet | undefined => unlessRefused(() => CpuSet.parse(text));

// Booted without nohz_full=, a kernel that supports it says `(null)`; others have no such file.
function ticklessIn(text: string | undefined): CpuSet | null | undefined {
  return text === undefined ? null : text === '(null)' ? CpuSet.EMPTY : parseList(text);
}

const selectedIn = (text = ''): string | undefined => /\[([^\]]+)\]/.exec(text)?.[1];

function offloadedCpus(
  line: string | undefined,
  tickless: CpuSet | null | undefined,
  possible: string | undefined,
): CpuSet | undefined {
  if (line === undefined || possible === undefined || tickless === undefined) return undefined;
  // What follows `--` is for init.
  const words = line.split(/\s+--(?:\s|$)/)[0]!.split(/\s+/);
  // The kernel takes dashes and underscores as equal. The last option counts.
  const list = words.flatMap((word) => /^rcu[-_]nocbs=(.*)$/.exec(word)?.[1] ?? []).at(-1) ?? '';
  const last = /\d*$/.exec(possible)![0];
  const listCpus = parseList(list === 'all' ? possible : list.replaceAll(/\bN\b/g, last));
  // A tick can stop only on CPUs whose callbacks run elsewhere.
  return listCpus?.union(tickless ?? CpuSet.EMPTY);
}

/** The kernel work done on these CPUs. Pure. */
export function kernelWork(settings: KernelSettings, cpus: CpuSet): readonly KernelWork[] {
  const { tickless, offloaded, hugepages, compaction } = settings;
  const ticking = tickless === undefined ? CpuSet.EMPTY : cpus.difference(tickless ?? CpuSet.EMPTY);
  const calling = offloaded ? cpus.difference(offloaded) : CpuSet.EMPTY;
  const work: KernelWork[] = [];
  if (!ticking.isEmpty) {
    const kernel = tickless === null ? 'a kernel with CONFIG_NO_HZ_FULL, booted' : 'boot';
    const advice = `${kernel} with \`nohz_full=${ticking}\`, if threads spin there`;
    work.push({ found: `the timer's tick interrupts ${cpusNamed(ticking)}`, advice });
  }
  if (!calling.isEmpty) {
    const advice = `boot with \`rcu_nocbs=${calling}\``;
    work.push({ found: `RCU callbacks run on ${cpusNamed(calling)}`, advice });
  }
  if (hugepages === 'always') {
    work.push({
      found: 'khugepaged moves pages of all processes and makes their threads stop for it',
      advice: `\`echo madvise > ${HUGEPAGES}/enabled\``,
    });
  }
  if (compaction === 'always' && hugepages !== 'never') {
    work.push({
      found: 'a page fault waits until memory is compacted',
      advice: `\`echo defer+madvise > ${HUGEPAGES}/defrag\``,
    });
  }
  return work;
}

/** The work and the advice in one sentence. */
export const workText = ({ found, advice }: KernelWork): string => `${found}: ${advice}`;
