// FileSetting: a setting that is one kernel file, which contains the value itself.
import type { CpuSet } from '../../machine/cpu-set.js';
import type { KernelFiles } from './kernel-files.js';
import type { PartDemand, Setting } from './setting.js';

export abstract class FileSetting implements Setting {
  readonly #title: string;

  constructor(
    protected readonly files: KernelFiles,
    readonly path: string,
    title: string,
  ) {
    this.#title = title;
  }

  get identity(): string | null {
    return null;
  }

  get title(): string {
    return this.#title;
  }

  read(): string | undefined {
    return this.files.read(this.path);
  }

  write(value: string): void {
    this.files.write(this.path, value);
  }

  abstract target(base: string, demand: PartDemand): string;
  abstract disturbs(value: string, demand: PartDemand): CpuSet;
}
