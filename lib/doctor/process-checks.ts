// Checks of what this process may do.
import { cpusNamed } from '../base/text/cpus-named.js';
import { shellWord } from '../base/text/shell-word.js';
import { mendText } from '../state/folder/machine-group.js';
import type { MachineFacts } from './facts.js';
import { ok, problem, unknown, type Verdict, warning } from './finding.js';

// linux/capability.h
const CAP_SYS_ADMIN = 21n;
export const CAP_SYS_NICE = 23n;

export const has = (capabilities: bigint, bit: bigint) => ((capabilities >> bit) & 1n) === 1n;

export function stateFolder({
  stateFolder: { path, scope, exists, fileSystem, refusal, notTheGroups },
}: MachineFacts): Verdict {
  const mend = `as root \`${mendText(path)}\``;
  if (refusal !== undefined) {
    const other = '`--state-dir DIR` uses a private folder, which the rest of the machine does not know';
    const make = `\`groupadd -rf numalign && install -d -m 2770 -g numalign ${shellWord(path)}\``;
    const join = '`usermod -aG numalign USER` for each user, who must then log in again';
    if (notTheGroups !== undefined) return problem(refusal, `${mend}, and once ${join}; or ${other}`);
    const advice =
      scope === 'machine' ? `as root, at each boot, ${make}, and once ${join}; or ${other}` : other;
    return problem(refusal, advice);
  }
  const where = `${path} (${scope}, ${fileSystem ?? 'unknown file system'})`;
  const found = exists ? `${where} can be written` : `${where} is not there yet and can be made`;
  if (notTheGroups !== undefined) {
    return warning(`${found}, but not by members of its group: ${notTheGroups} belongs to another`, mend);
  }
  if (fileSystem === 'overlay' && scope === 'machine') {
    return warning(`${found}, but is this container's own`, `mount the machine's ${path} into the container`);
  }
  if (fileSystem !== null && /^(nfs|cifs|smb|9p|ceph|fuse)/.test(fileSystem)) {
    return warning(
      `${found}; whether its locks hold is up to a server`,
      'a folder on a file system of this machine',
    );
  }
  return ok(found);
}

export function capabilities({ user, capabilities }: MachineFacts): Verdict {
  const who = user === 0 ? 'root' : `user ${user}`;
  if (capabilities === null) return unknown(`${who}; its capabilities cannot be read`);
  const relevant = [
    { name: 'CAP_SYS_NICE', bit: CAP_SYS_NICE },
    { name: 'CAP_SYS_ADMIN', bit: CAP_SYS_ADMIN },
  ];
  const capabilityNames = relevant.filter(({ bit }) => has(capabilities, bit)).map(({ name }) => name);
  const found = `${who}, ${capabilityNames.length > 0 ? `with ${capabilityNames.join(' and ')}` : 'with neither CAP_SYS_NICE nor CAP_SYS_ADMIN'}`;
  if (has(capabilities, CAP_SYS_NICE)) return ok(found);
  return warning(
    `${found}: processes of other users cannot be moved, and no thread gets a real-time class`,
    'run as root, or with `AmbientCapabilities=CAP_SYS_NICE` (systemd), `--cap-add SYS_NICE` (containers)',
  );
}

export function allowedCpus({ online, allowed, limit, unbalanced, maskOrigin }: MachineFacts): Verdict {
  const outside = online.difference(limit).difference(unbalanced);
  if (!outside.isEmpty) {
    return warning(
      `${limit} of ${online}: the cpuset of this process has no ${cpusNamed(outside)}, of which it gets no grant`,
      '`AllowedCPUs=` (systemd), `--cpuset-cpus` (containers)',
    );
  }
  if (maskOrigin !== 'chosen') return ok(`${limit}`);
  return warning(
    `${allowed} of ${online}: the mask of this shell, to which grants keep that are made here`,
    `\`--ignore-mask\` for one program, or a wider mask: \`taskset -pc ${online} $$\``,
  );
}

export function seccomp({ seccomp }: MachineFacts): Verdict {
  if (seccomp === null) return unknown('the kernel does not report it');
  if (seccomp === 0) return ok('none');
  return ok('a filter is in force; see memory-policy for whether it denies what numalign needs');
}

export function memoryPolicy({ memoryPolicyRefusal, seccomp, numaNodes }: MachineFacts): Verdict {
  if (memoryPolicyRefusal === undefined) return ok('can be read and set for its own threads');
  const found = `refused with ${memoryPolicyRefusal}: memory is booked, but not bound to NUMA nodes`;
  if (numaNodes === 1) return ok(`${found}; there is only one`);
  if (memoryPolicyRefusal === 'ENOSYS') return warning(found, 'a kernel with CONFIG_NUMA');
  const filter = seccomp === 0 ? 'the security module' : "the container's seccomp profile";
  return warning(
    found,
    `let ${filter} allow get_mempolicy, set_mempolicy, mbind and move_pages, or add CAP_SYS_NICE`,
  );
}
