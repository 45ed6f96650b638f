// MaskSetting: a kernel file with the CPUs on which some work is done.
import { unlessRefused } from '../../base/errors.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { housekeepingCpus } from '../../machine/online-cpus.js';
import { cpuMask, parseCpuMask } from './cpu-mask.js';
import { FileSetting } from './file-setting.js';
import type { KernelFiles } from './kernel-files.js';
import type { PartDemand } from './setting.js';

/** How a file writes CPUs. The printed text is canonical. */
export interface CpuText {
  /** Null for a text of another form. */
  parse(text: string): CpuSet | null;
  print(cpus: CpuSet): string;
}

/** For example `ff,ffffffff`. */
export const HEX: CpuText = { parse: parseCpuMask, print: cpuMask };
/** For example `0-3,8`. */
export const LIST: CpuText = {
  parse: (text) => unlessRefused(() => CpuSet.parse(text), null),
  print: String,
};

/**
 * `base` without the quiet CPUs. If that leaves no CPU online, housekeeping CPUs, because the
 * kernel refuses such a mask or takes it for no mask at all. `base` itself if it has no quiet CPU,
 * or if every CPU is quiet. Pure.
 */
function withoutQuiet(base: CpuSet, { topology, cpus }: PartDemand): CpuSet {
  if (!base.intersects(cpus)) return base;
  const rest = base.difference(cpus);
  if (rest.intersects(topology.cpus)) return rest;
  const others = housekeepingCpus(topology, base, cpus);
  return others.isEmpty ? base : others;
}

export class MaskSetting extends FileSetting {
  constructor(
    files: KernelFiles,
    path: string,
    title: string,
    private readonly text: CpuText,
  ) {
    super(files, path, title);
  }

  override read(): string | undefined {
    return this.readFrom(this.path);
  }

  target(base: string, demand: PartDemand): string {
    return this.text.print(withoutQuiet(this.cpusOf(base), demand));
  }

  disturbs(value: string, { cpus }: PartDemand): CpuSet {
    return this.cpusOf(value).intersection(cpus);
  }

  /**
   * The canonical text of a file of the same form; undefined if it does not exist or has another
   * form.
   */
  protected readFrom(path: string): string | undefined {
    const text = this.files.read(path);
    const cpus = text === undefined ? null : this.text.parse(text);
    return cpus === null ? undefined : this.text.print(cpus);
  }

  protected cpusOf(value: string): CpuSet {
    return this.text.parse(value) ?? CpuSet.EMPTY;
  }
}
