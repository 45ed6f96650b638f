// GroupProcesses: moves processes into and out of a cgroup, and removes an empty one.
import { statSync } from 'node:fs';
import type { NumalignError } from '../../base/errors.js';
import { attempt, cgroupRefusal } from '../files/cgroup-error.js';
import { childNames } from '../files/cgroup-files.js';
import { checkFolder } from '../files/cgroup-path.js';
import { isAtOrBelow } from '../files/mounts.js';
import { GroupFiles } from './group-files.js';

// How long to follow processes that start while others are moved out.
const BORN_MS = 1000;
// How long the kernel may still count a process that has just ended and that no file shows. A
// process of another pid namespace stays counted.
const ENDED_MS = 100;

export abstract class GroupProcesses extends GroupFiles {
  protected abstract at(path: string): GroupProcesses;
  protected abstract moveOut(pid: number, to: string): void;
  /** @throws ERR_CGROUP if a process in this folder would break the cgroups below it */
  protected checkLeaf(_folder: string): void {}
  /** Called before the removal. */
  protected endPartition(): void {}

  /** Moves a process with all its threads, even those that start meanwhile (`cgroup.procs`). */
  attach(pid: number): void {
    this.moveProcess(pid, this.path, `move process ${pid} into ${this.path}`);
  }

  protected moveProcess(pid: number, folder: string, doing: string): void {
    this.checkLeaf(folder);
    this.writeNumber(folder, 'cgroup.procs', { action: 'attach', doing, value: pid });
  }

  /**
   * Moves a process's threads that are in it to the cgroup with this folder; moves the whole
   * process if all its threads are in it.
   */
  moveBack(pid: number, to: string): void {
    this.#checkPlace(to);
    this.moveOut(pid, to);
  }

  /** Moves all processes in it or below it to the cgroup with this folder. */
  evacuate(home: string): void {
    for (const group of this.#descent()) group.#moveAllOut(home);
  }

  /**
   * Removes it and the cgroups below it. A missing cgroup is not an error.
   * @param leftoversTo the folder of the cgroup that processes inside move to first; a process
   *   moves as a whole if all its threads are inside
   * @throws ERR_CGROUP if numalign did not make all of them (`not-made`), or processes are inside
   *   and have no place to go (`in-use`)
   */
  remove(leftoversTo?: string): void {
    if (!this.exists()) return;
    const groups = this.#descent();
    for (const group of groups) if (!group.isMade()) throw group.#notMade();
    for (const group of groups) group.#removeAlone(leftoversTo);
  }

  // The group and all below it, the lowest first.
  #descent(): GroupProcesses[] {
    return [...this.childPaths().flatMap((path) => this.at(path).#descent()), this];
  }

  #moveAllOut(home: string): void {
    for (const pid of this.processes()) this.moveBack(pid, home);
  }

  #removeAlone(leftoversTo: string | undefined): void {
    const found = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    if (!found) return;
    const end = performance.now() + BORN_MS;
    const step = {
      action: 'remove',
      doing: `remove the cgroup ${this.path}`,
      path: this.path,
      value: this.path,
    } as const;
    const mayBeBorn = () => leftoversTo !== undefined && performance.now() <= end;
    for (let attempts = 0; ; ) {
      if (leftoversTo !== undefined) this.#moveAllOut(leftoversTo);
      try {
        this.endPartition();
        attempt(step, () => this.tree.files.removeFolder(this.path));
        break;
      } catch (error) {
        if (!this.exists()) break;
        if (childNames(this.path).length > 0) throw error;
        if (this.processes().length > 0) {
          if (!mayBeBorn()) throw error;
        } else if ((error as NumalignError).errnoName !== 'EBUSY' || attempts++ === ENDED_MS) throw error;
        else waitAMoment();
      }
    }
    this.tree.made.remove(this.path, found.dev, found.ino);
  }

  /**
   * Repeats a step while the kernel refuses it with this error because it still counts a process
   * that has ended.
   */
  protected untilEnded(errnoName: string, step: () => void): void {
    for (let attempts = 0; ; attempts++) {
      try {
        step();
        return;
      } catch (error) {
        const isRefused = (error as NumalignError).errnoName === errnoName && attempts < ENDED_MS;
        if (!isRefused || this.#descent().some((group) => group.processes().length > 0)) throw error;
        waitAMoment();
      }
    }
  }

  // The only write outside numalign's root: a process goes back to its former cgroup.
  #checkPlace(to: string): void {
    const isPlain = to
      .split('/')
      .slice(1)
      .every((part) => !['', '.', '..'].includes(part));
    if (!isPlain || !isAtOrBelow(to, this.tree.mount) || isAtOrBelow(to, this.path)) {
      const valid = `the folder of another cgroup below ${this.tree.mount}`;
      throw cgroupRefusal('bad-path', `processes of ${this.path} cannot go to ${to}`, {
        path: this.path,
        value: to,
        valid,
      });
    }
    checkFolder(this.tree.mount, to);
  }

  #notMade(): Error {
    const valid = 'a cgroup that numalign made, with none below it that it did not make';
    return cgroupRefusal('not-made', `${this.path} stays: numalign did not make it`, {
      path: this.path,
      value: this.path,
      valid,
    });
  }
}

// Blocks this thread for a millisecond.
function waitAMoment(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
}
