// Sandboxes: the process that holds a pod's namespaces (pause) is not a container, and no plugin is
// asked for its CPUs. Its cgroup puts it on the reserved CPUs, if there are any.
import type { CpuSet, Manager } from 'numalign';
import type { Log } from '../base/log.js';
import type { CpusetFiles } from '../cgroups/cpuset-files.js';
import type { PodSandbox } from '../nri/messages.js';

export interface SandboxesOptions {
  readonly manager: Manager;
  readonly cpusets: CpusetFiles;
  readonly log: Log;
}

export class Sandboxes {
  readonly #options: SandboxesOptions;
  #isReported = false;

  constructor(options: SandboxesOptions) {
    this.#options = options;
  }

  /** Never fails: such a process does almost nothing. */
  place(pods: readonly PodSandbox[]): void {
    const reserved = this.#options.manager.settings().reservedSystemCPUs;
    if (reserved.isEmpty) this.#report();
    else this.#placeOn(reserved, pods);
  }

  #placeOn(reserved: CpuSet, pods: readonly PodSandbox[]): void {
    const { cpusets, log } = this.#options;
    for (const { name, linux } of pods) {
      const path = linux?.cgroups_path ?? '';
      const found = path === '' ? undefined : cpusets.read(path);
      if (!found || found.equals(reserved)) continue;
      const error = cpusets.write(path, reserved);
      if (error !== undefined)
        log('warn', `the sandbox of pod ${name} stays on CPUs ${found}, not ${reserved}: ${error}`);
    }
  }

  #report(): void {
    if (this.#isReported) return;
    this.#isReported = true;
    const text = 'no CPUs are reserved: the sandboxes of pods may run on all CPUs, even exclusive ones';
    this.#options.log('info', text);
  }
}
