// numalign share: adds or removes a shared member.
import { readdirSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { Command } from 'commander';
import { type CpuSet, type Manager, openManager } from 'numalign';
import type { SharedGroup } from 'numalign/diagnostics';
import { shellWord } from 'numalign/tools';
import { outputOption, processId } from '../arguments/arguments.js';
import { MACHINE_STATE_DIR, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { print } from '../terminal/output.js';
import { formatJson, printable } from '../terminal/text.js';

type Target = Parameters<Manager['addSharedMember']>[0];

interface ShareFlags extends StateFlags {
  remove?: boolean;
}

export function addShare(program: Command): void {
  program
    .command('share')
    .description('Keep a process, or all processes of a cgroup, in the shared pool, off granted CPUs.')
    .argument('<member>', 'a pid, or the absolute path of a cgroup', target)
    .option('--remove', 'end the membership')
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
A shared member leaves CPUs before numalign grants them, and may use them again after the release. It is a member until it ends or you remove it.
A removed process goes back to its cgroup if no CPU is exclusive; else it stays, and a message shows how to move it out. Programs that use
numalign are members already.

JSON: stateDir, sharedPool, sharedMembers, cpus (where the process may run now; null for a cgroup).

Exit code: 0 on success; 1 if the member could not be moved, and for an error; 2 for a wrong command line.

Examples:
  $ numalign share 4711
  $ numalign share /sys/fs/cgroup/system.slice
  $ numalign share 4711 --remove
  $ numalign status --output json | jq .sharedMembers`,
    )
    .action(share);
}

function target(value: string): Target {
  return isAbsolute(value) ? { cgroup: value } : { pid: processId(value) };
}

async function share(target: Target, flags: ShareFlags): Promise<void> {
  const { remove = false, stateDir = MACHINE_STATE_DIR, output } = flags;
  // This command grants nothing, and its process needs no membership.
  const manager = await openManager({ stateDir, besideKubelet: true, sharedMember: false });
  try {
    const group = remove ? await manager.removeSharedMember(target) : undefined;
    if (!remove) await manager.addSharedMember(target);
    const sharedPool = manager.sharedPool();
    const sharedMembers = manager.sharedMembers();
    const cpus = 'pid' in target ? await cpusOfProcess(target.pid) : null;
    const isOnGrant = manager
      .grants()
      .some((grant) => cpus !== null && !grant.cpus.intersection(cpus).isEmpty);
    const memberText = () => (isOnGrant ? onGrantText(target, cpus!) : addedText(target, cpus ?? sharedPool));
    const text =
      output === 'json'
        ? formatJson({ stateDir, sharedPool, sharedMembers, cpus })
        : `${printable(remove ? removedText(target, sharedMembers, group) : memberText())}\n`;
    print(text);
  } finally {
    manager.close();
  }
}

// The CPUs that the kernel reports; null if the process has ended.
async function cpusOfProcess(pid: number): Promise<CpuSet | null> {
  const { affinity } = await import('numalign/diagnostics');
  const cpus = unlessEnded(() => readdirSync(`/proc/${pid}/task`))?.flatMap(
    (tid) => unlessEnded(() => affinity(Number(tid))) ?? [],
  );
  return cpus?.reduce<CpuSet | null>((all, mask) => all?.union(mask) ?? mask, null) ?? null;
}

function unlessEnded<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

const title = (target: Target) => ('pid' in target ? `process ${target.pid}` : target.cgroup);

function addedText(target: Target, pool: CpuSet): string {
  return `${title(target)} runs in the shared pool: CPUs ${pool}`;
}

// For the owner of a grant and its child processes. Attached processes are refused.
function onGrantText(target: Target, cpus: CpuSet): string {
  return `${title(target)} is a shared member, but stays on CPUs ${cpus} until the grant that it runs for ends`;
}

function removedText(
  target: Target,
  members: ReturnType<Manager['sharedMembers']>,
  group: SharedGroup | null | undefined,
): string {
  const isMember = members.some(
    (member) => member.kind === 'process' && 'pid' in target && member.pid === target.pid,
  );
  if (isMember) return `${title(target)} is a shared member by itself: it uses numalign`;
  const text = `${title(target)} is no longer a shared member`;
  if (!group || !('pid' in target)) return text;
  const move = `echo ${target.pid} > ${shellWord(group.exit)}`;
  return `${text}, but stays in the cgroup ${group.path}, which has the CPUs of the shared pool; \`${move}\` takes it out`;
}
