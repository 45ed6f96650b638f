// The record of an owner, and the command by which people know it.
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { printable } from '../../base/printable.js';
import type { OwnerChoice } from '../../input/request.js';
import { identifyCgroup } from '../../processes/cgroup-owner.js';
import { programName } from '../../processes/program-name.js';
import type { OwnerFile } from '../files/owner-file.js';
import { podText } from '../files/pod-text.js';

const MAX_COMMAND_LENGTH = 200;

/** A command for people: on one line, cut to a readable length. */
export function readableCommand(command: string): string {
  return printable(command).slice(0, MAX_COMMAND_LENGTH);
}

/** What this process runs, without its arguments. */
export const processCommand = () =>
  readableCommand(programName([process.execPath, ...process.execArgv, ...process.argv.slice(1)]));

/** The record of an owner that is none yet. */
export function newOwner(owner: OwnerChoice, uuid: string): OwnerRecord {
  const isProcess = owner === 'process';
  return {
    kind: typeof owner === 'object' ? 'cgroup' : owner,
    uuid,
    pid: isProcess ? process.pid : null,
    command: isProcess ? processCommand() : null,
    cgroup: typeof owner === 'object' ? identifyCgroup(owner.cgroup) : null,
    unknown: {},
  };
}

/** What every file tells of the state at hand. */
export type Header = Pick<OwnerFile, 'bootId' | 'generation' | 'settings'>;

export function fileOf(
  { uuid, kind, pid, command, cgroup }: OwnerRecord,
  header: Header,
  pods: OwnerFile['pods'],
): OwnerFile {
  return { uuid, kind, pid, command, cgroup, ...header, pods };
}

export function isSame(a: readonly PodAssignment[], b: readonly PodAssignment[]): boolean {
  return a.length === b.length && a.every((pod, i) => pod === b[i] || podText(pod) === podText(b[i]!));
}

// The pods of owners whose files are not locked, by the owner's uuid. Persistent owners of the
// first versions have none.
export function byFile(pods: readonly PodAssignment[]): Map<string, PodAssignment[]> {
  const files = new Map<string, PodAssignment[]>();
  for (const pod of pods) {
    const { kind, uuid } = pod.owner;
    if (kind !== 'process' && uuid !== '') files.set(uuid, [...(files.get(uuid) ?? []), pod]);
  }
  return files;
}

// All of both; of those in both the second.
export function union(a: readonly PodAssignment[], b: readonly PodAssignment[]): PodAssignment[] {
  return [...new Map([...a, ...b].map((pod) => [pod.uid, pod])).values()];
}
