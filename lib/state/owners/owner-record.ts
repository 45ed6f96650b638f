// The record of an owner, and the command that people know it by.
import type { OwnerRecord } from '../../account/pod-assignment.js';
import { printable } from '../../base/text/printable.js';
import type { RequestedOwner } from '../../input/requests/owner.js';
import { identifyCgroup } from '../../processes/cgroup-owner.js';
import { ownerName, programName } from '../../processes/program-name.js';
import type { OwnerFile } from '../format/owner-file.js';

const MAX_COMMAND_LENGTH = 200;

/** A command for people: one line, cut to a readable length. */
export function readableCommand(command: string): string {
  return printable(command).slice(0, MAX_COMMAND_LENGTH);
}

const words = () => [process.execPath, ...process.execArgv, ...process.argv.slice(1)];

/** The command of this process, without its arguments. */
export const processCommand = () => readableCommand(programName(words()));

/** The record of a new owner. */
export function newOwner(owner: RequestedOwner, uuid: string): OwnerRecord {
  const isProcess = owner === 'process';
  return {
    kind: typeof owner === 'object' ? 'cgroup' : owner,
    uuid,
    pid: isProcess ? process.pid : null,
    command: isProcess ? readableCommand(ownerName(words())) : null,
    cgroup: typeof owner === 'object' ? identifyCgroup(owner.cgroup) : null,
    unknown: {},
  };
}

/** The members of every owner file that describe the state. */
export type Header = Pick<OwnerFile, 'bootId' | 'generation' | 'settings'>;

export function fileOf(
  { uuid, kind, pid, command, cgroup }: OwnerRecord,
  header: Header,
  pods: OwnerFile['pods'],
  kubelet: OwnerFile['kubelet'] = null,
): OwnerFile {
  return { uuid, kind, pid, command, cgroup, ...header, kubelet, pods };
}
