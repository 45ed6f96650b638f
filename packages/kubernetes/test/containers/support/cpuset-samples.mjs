// CpusetSamples: reads the cpusets of containers in the kernel, over and over, and compares them
// with the record: no CPU is in two containers if one of them has it exclusively.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CpuSet } from 'numalign';

const PAUSE_MS = 3;

export class CpusetSamples {
  /** The number of samples, and of those in which a container had its own CPUs. */
  count = 0;
  exclusiveCount = 0;
  /** What was wrong. */
  flaws = new Set();
  #manager;
  // By id: containers whose creation has returned, and whose end has not begun.
  #containers = new Map();
  #loop;
  #isOver = false;

  constructor(manager) {
    this.#manager = manager;
    this.#loop = this.#run();
  }

  /** `pod`: created. `isExclusive`: it must be on record until {@link remove}. */
  add(pod, isExclusive) {
    this.#containers.set(pod.containerId, { name: pod.name, isExclusive, folder: undefined });
  }

  /** `pod`: running. */
  async watch(pod) {
    const folder = await pod.cpusetFolder();
    const container = this.#containers.get(pod.containerId);
    if (container) container.folder = folder;
  }

  remove(pod) {
    this.#containers.delete(pod.containerId);
  }

  async end() {
    this.#isOver = true;
    await this.#loop;
  }

  async #run() {
    while (!this.#isOver) {
      this.look();
      await sleep(PAUSE_MS);
    }
  }

  look() {
    // Records that are equal before and after held in between.
    const before = this.#granted();
    const found = [...this.#containers].map(([id, each]) => ({ id, ...each, cpus: read(each.folder) }));
    const after = this.#granted();
    this.count += 1;
    for (const { id, name, isExclusive, cpus } of found) {
      const isOnRecord = before.has(id) && after.has(id);
      if (isExclusive && !isOnRecord) this.flaws.add(`${name} is not on record`);
      if (isOnRecord) this.#checkExclusive({ id, name, cpus }, after.get(id), found);
    }
  }

  #checkExclusive({ id, name, cpus }, granted, found) {
    this.exclusiveCount += 1;
    if (cpus && !cpus.equals(granted)) this.flaws.add(`${name} has CPUs ${cpus}, not ${granted}`);
    for (const other of found)
      if (other.id !== id && other.cpus && !other.cpus.intersection(granted).isEmpty)
        this.flaws.add(`${other.name} has CPUs ${other.cpus}, and ${name} is granted ${granted}`);
  }

  #granted() {
    return new Map(this.#manager.grants().map(({ uid, cpus }) => [uid, cpus]));
  }
}

function read(folder) {
  if (folder === undefined) return undefined;
  try {
    return CpuSet.parse(readFileSync(join(folder, 'cpuset.cpus'), 'utf8').trim());
  } catch {
    // It has just ended.
    return undefined;
  }
}
