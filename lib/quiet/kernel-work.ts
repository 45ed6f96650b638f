// KernelWork: what the kernel does on CPUs, which only its command line or a setting of the whole
// machine changes: numalign reports it, and changes nothing.

import { unlessRefused } from '../base/errors.js';
import { cpusNamed } from '../base/text/cpus-named.js';
import { CpuSet } from '../machine/cpu-set.js';
import { type KernelFiles, visibleFiles } from './kernel/kernel-files.js';

/** Settings that numalign does not change. undefined: they are hidden, or not understood. */
export interface KernelSettings {
  /**
   * CPUs without the timer's tick while one thread runs there (nohz_full=); null: this kernel cannot
   * do without (CONFIG_NO_HZ_FULL).
   */
  readonly tickless: CpuSet | null | undefined;
  /** CPUs whose RCU callbacks threads invoke that can be anywhere (rcu_nocbs=, nohz_full=). */
  readonly offloaded: CpuSet | undefined;
  /** What transparent hugepages are in force for: `always`, `madvise`, `never`. */
  readonly hugepages: string | undefined;
  /** When a page fault waits until memory is compacted: `always`, `madvise`, `defer` or others. */
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
 * Documentation/admin-guide/kernel-parameters.txt, Documentation/admin-guide/mm/transhuge.rst. What is
 * closed to this process counts as hidden.
 */
export function readKernelSettings(files: KernelFiles): KernelSettings {
  const { read: seen } = visibleFiles(files);
  const possible = seen(`${CPUS}/possible`);
  const tickless = possible === undefined ? undefined : ticklessIn(seen(`${CPUS}/nohz_full`));
  return {
    tickless,
    offloaded: offloadedCpus(seen('/proc/cmdline'), tickless, possible),
    hugepages: choiceIn(seen(`${HUGEPAGES}/enabled`)),
    compaction: choiceIn(seen(`${HUGEPAGES}/defrag`)),
  };
}

const parseList = (text: string): CpuSet | undefined => unlessRefused(() => CpuSet.parse(text));

// A kernel that knows nohz_full= and was booted without it says `(null)`, another has no file.
function ticklessIn(text: string | undefined): CpuSet | null | undefined {
  return text === undefined ? null : text === '(null)' ? CpuSet.EMPTY : parseList(text);
}

const choiceIn = (text = ''): string | undefined => /\[([^\]]+)\]/.exec(text)?.[1];

function offloadedCpus(
  line: string | undefined,
  tickless: CpuSet | null | undefined,
  possible: string | undefined,
): CpuSet | undefined {
  if (line === undefined || possible === undefined || tickless === undefined) return undefined;
  // What follows `--` is for init.
  const words = line.split(/\s+--(?:\s|$)/)[0]!.split(/\s+/);
  // The kernel takes dashes and underscores for the same. The last word counts.
  const list = words.flatMap((word) => /^rcu[-_]nocbs=(.*)$/.exec(word)?.[1] ?? []).at(-1) ?? '';
  const last = /\d*$/.exec(possible)![0];
  const named = parseList(list === 'all' ? possible : list.replaceAll(/\bN\b/g, last));
  // A tick is stopped only where callbacks are invoked elsewhere.
  return named?.union(tickless ?? CpuSet.EMPTY);
}

/** What of it is done on these CPUs. Pure. */
export function kernelWork(settings: KernelSettings, cpus: CpuSet): readonly KernelWork[] {
  const { tickless, offloaded, hugepages, compaction } = settings;
  const ticking = tickless === undefined ? CpuSet.EMPTY : cpus.difference(tickless ?? CpuSet.EMPTY);
  const calling = offloaded ? cpus.difference(offloaded) : CpuSet.EMPTY;
  const work: KernelWork[] = [];
  if (!ticking.isEmpty) {
    const kernel = tickless === null ? 'a kernel with CONFIG_NO_HZ_FULL, booted' : 'boot';
    const advice = `${kernel} with \`nohz_full=${ticking}\`, where threads spin there`;
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

/** In one sentence. */
export const workText = ({ found, advice }: KernelWork): string => `${found}: ${advice}`;
