// MaskSetting: a file of the kernel that has the CPUs on which something is done.
import { unlessRefused } from '../../base/errors.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { housekeepingCpus } from '../../machine/housekeeping.js';
import { cpuMask, parseCpuMask } from './cpu-mask.js';
import { FileSetting } from './file-setting.js';
import type { KernelFiles } from './kernel-files.js';
import type { PartDemand } from './setting.js';

/** How a file has CPUs. What is printed is canonical. */
export interface CpuText {
  /** null: a text that is none of these. */
  parse(text: string): CpuSet | null;
  print(cpus: CpuSet): string;
}

/** Such as `ff,ffffffff`. */
export const HEX: CpuText = { parse: parseCpuMask, print: cpuMask };
/** Such as `0-3,8`. */
export const LIST: CpuText = {
  parse: (text) => unlessRefused(() => CpuSet.parse(text), null),
  print: String,
};

/**
 * `base` without the quiet CPUs; housekeeping CPUs where that leaves none that is online, because
 * the kernel refuses such a mask, or takes it for no mask at all. `base` itself where it has no
 * quiet CPU, or where every CPU is quiet. Pure.
 */
export function withoutQuiet(base: CpuSet, { topology, cpus }: PartDemand): CpuSet {
  if (!base.intersects(cpus)) return base;
  const rest = base.difference(cpus);
  if (rest.intersects(topology.cpus)) return rest;
  const others = housekeepingCpus(topology, base, cpus);
  return others.isEmpty ? base : others;
}

export class MaskSetting extends FileSetting {
  readonly #text: CpuText;

  constructor(files: KernelFiles, path: string, title: string, text: CpuText) {
    super(files, path, title);
    this.#text = text;
  }

  override read(): string | undefined {
    return this.readFrom(this.path);
  }

  target(base: string, demand: PartDemand): string {
    return this.#text.print(withoutQuiet(this.cpusOf(base), demand));
  }

  disturbs(value: string, { cpus }: PartDemand): CpuSet {
    return this.cpusOf(value).intersection(cpus);
  }

  /** The canonical text of a file of the same form; undefined where there is none. */
  protected readFrom(path: string): string | undefined {
    const text = this.files.read(path);
    const cpus = text === undefined ? null : this.#text.parse(text);
    return cpus === null ? undefined : this.#text.print(cpus);
  }

  protected cpusOf(value: string): CpuSet {
    return this.#text.parse(value) ?? CpuSet.EMPTY;
  }
}
