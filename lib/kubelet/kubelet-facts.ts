// Looks for a kubelet on this machine: its state files, its service, its process, all of them
// root's. And what this process is to it. Only reads.
import { lstatSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { unlessRefused } from '../base/errors.js';
import { textOf } from '../base/text/text-of.js';
import { CpuSet } from '../machine/cpu-set.js';
import { namedProcesses } from '../processes/named-processes.js';
import { CPU_MANAGER_STATE, type CpuManagerState, parseCpuManagerState } from './cpu-manager-state.js';
import { type KubeletFacts, podOfCgroup } from './kubelet-conflict.js';
import { MEMORY_MANAGER_STATE } from './memory-manager-state.js';

const ROOT_DIR = '/var/lib/kubelet';
// Distributions have the kubelet inside of other programs.
const SERVICES = [
  'kubelet',
  'k3s',
  'k3s-agent',
  'rke2-server',
  'rke2-agent',
  'snap.microk8s.daemon-kubelite',
];
const PROCESSES = ['kubelet', 'k3s-server', 'k3s-agent', 'kubelite'];
/** The inode of the machine's own cgroup namespace, the same in every kernel. */
const MACHINE_CGROUP_NAMESPACE = 'cgroup:[4026531835]';

interface FoundProcess {
  readonly what: string;
  readonly rootDir: string | undefined;
}

function findProcess(root: string): FoundProcess | undefined {
  for (const { pid, name } of namedProcesses(PROCESSES, root)) {
    const words = textOf(join(root, '/proc', String(pid), 'cmdline'))?.split('\0') ?? [];
    const at = words.findIndex((word) => /^--?root-dir(=|$)/.test(word));
    const rootDir = words[at]?.includes('=') ? words[at].slice(words[at].indexOf('=') + 1) : words[at + 1];
    return { what: `process ${pid}, ${name}`, rootDir: at < 0 ? undefined : rootDir };
  }
  return undefined;
}

/** Whether root has such a file or link; one that cannot be looked for counts. */
function isFound(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.uid === 0;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOTDIR';
  }
}

function cpuStateIn(folder: string): CpuManagerState | undefined {
  const file = textOf(join(folder, CPU_MANAGER_STATE));
  if (file === undefined) return undefined;
  // Found it is all the same.
  return unlessRefused(() => parseCpuManagerState(file, { podLevelResourceManagers: true }));
}

interface CgroupCpus {
  /** The CPUs of its cpuset. */
  readonly cpus: string | undefined;
  /** How many CPUs it may use at most at a time. */
  readonly limit: number | undefined;
}

function limitIn(folder: string, cpuFolder: string): number | undefined {
  const [max, per] = textOf(join(folder, 'cpu.max'))?.trim().split(' ').map(Number) ?? [];
  if (max && per) return max / per;
  const quota = Number(textOf(join(cpuFolder, 'cpu.cfs_quota_us')));
  const period = Number(textOf(join(cpuFolder, 'cpu.cfs_period_us')));
  return quota > 0 && period > 0 ? quota / period : undefined;
}

/**
 * The nearest cgroup with a limit, from `path` up: a container's own, also for a process in a
 * cgroup below it. Of either version. /sys/fs/cgroup is the machine's, or in a container its own.
 */
function cgroupCpus(root: string, path: string): CgroupCpus {
  const mount = join(root, '/sys/fs/cgroup');
  const parts = path.split('/').filter((part) => part !== '');
  const paths = Array.from(parts, (_, i) => parts.slice(0, parts.length - i).join('/'));
  const cgroups = [...paths, ''].map((at): CgroupCpus => {
    const cpus =
      textOf(join(mount, at, 'cpuset.cpus.effective')) ??
      textOf(join(mount, 'cpuset', at, 'cpuset.cpus')) ??
      undefined;
    return { cpus: cpus?.trim(), limit: limitIn(join(mount, at), join(mount, 'cpu', at)) };
  });
  const known = cgroups.filter(({ cpus }) => cpus !== undefined);
  return known.find(({ limit }) => limit !== undefined) ?? known[0] ?? { cpus: undefined, limit: undefined };
}

function selfIn(root: string): Omit<KubeletFacts, 'found' | 'cpu'> {
  const paths = (textOf(join(root, '/proc/self/cgroup')) ?? '')
    .split('\n')
    .map((line) => line.replace(/^\d+:[^:]*:/, ''));
  const cgroup = paths.find((path) => podOfCgroup(path) !== undefined);
  const pod = cgroup === undefined ? undefined : podOfCgroup(cgroup);
  let namespace = MACHINE_CGROUP_NAMESPACE;
  try {
    namespace = readlinkSync(join(root, '/proc/self/ns/cgroup'));
  } catch {
    // A kernel without such namespaces.
  }
  // Not the mask of a thread, where the cgroup tells: it may be pinned to a part by now.
  const { cpus, limit } = cgroupCpus(root, cgroup ?? '/');
  const mask = /^Cpus_allowed_list:\s*(\S+)$/m.exec(textOf(join(root, '/proc/self/status')) ?? '')?.[1];
  return {
    pod,
    isInContainer: pod !== undefined || namespace !== MACHINE_CGROUP_NAMESPACE,
    allowed: CpuSet.parse(cpus ?? mask ?? ''),
    cpuLimit: limit,
  };
}

/**
 * `root`: where the machine's files are, for tests. Inside of a container only what is mounted
 * there can be seen.
 */
export function readKubeletFacts(root = '/'): KubeletFacts {
  const service = SERVICES.find((name) =>
    isFound(join(root, `/run/systemd/units/invocation:${name}.service`)),
  );
  const filesIn = (folder: string) =>
    [CPU_MANAGER_STATE, MEMORY_MANAGER_STATE]
      .map((name) => join(folder, name))
      .filter((path) => isFound(join(root, path)));
  let [rootDir, files] = [ROOT_DIR, filesIn(ROOT_DIR)];
  // Looked for only where there are no files in the usual place: there can be thousands of
  // processes.
  const process = files.length > 0 ? undefined : findProcess(root);
  if (process?.rootDir !== undefined) [rootDir, files] = [process.rootDir, filesIn(process.rootDir)];
  const self = selfIn(root);
  const found = [
    ...files,
    ...(service === undefined ? [] : [`${service}.service`]),
    ...(process ? [process.what] : []),
    ...(self.pod ? [`this process is in pod ${self.pod.uid}`] : []),
  ];
  const hasCpuState = files.includes(join(rootDir, CPU_MANAGER_STATE));
  return { found, cpu: hasCpuState ? cpuStateIn(join(root, rootDir)) : undefined, ...self };
}
