// KubeletFacts: looks for a kubelet on this machine by its state files, service and process, all
// owned by root, and for this process's place in it. Only reads.
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { textOf, unlessRefused } from '../base/errors.js';
import { CPU_MANAGER_STATE, MEMORY_MANAGER_STATE } from '../base/kubelet-features.js';
import { isInInitialCgroupNamespace } from '../cgroups/files/cgroup-namespace.js';
import { cpuLimit } from '../cgroups/limits.js';
import { CpuSet } from '../machine/cpu-set.js';
import { namedProcesses } from '../processes/named-processes.js';
import { type CpuManagerState, parseCpuManagerState } from './cpu-manager-state.js';
import { type KubeletFacts, podOfCgroup } from './kubelet-conflict.js';

const ROOT_DIR = '/var/lib/kubelet';
// Some distributions run the kubelet within other programs.
const SERVICES = [
  'kubelet',
  'k3s',
  'k3s-agent',
  'rke2-server',
  'rke2-agent',
  'snap.microk8s.daemon-kubelite',
];
const PROCESSES = ['kubelet', 'k3s-server', 'k3s-agent', 'kubelite'];

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

/** Whether root owns such a file or link. A path that cannot be checked counts as found. */
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
  // The kubelet counts as found even if its file cannot be read.
  return unlessRefused(() => parseCpuManagerState(file, { podLevelResourceManagers: true }));
}

interface CgroupCpus {
  /** The CPUs of its cpuset. */
  readonly cpus: string | undefined;
  /** How many CPUs it may use at the same time. */
  readonly limit: number | undefined;
}

const limitIn = (...folders: string[]): number | undefined =>
  folders.flatMap((folder) => unlessRefused(() => cpuLimit(folder)) ?? [])[0]?.cpus;

/**
 * The nearest cgroup with a limit, from `path` up: a container's own, even for a process in a
 * cgroup below it. Works with both versions. /sys/fs/cgroup is the machine's, or in a container its
 * own.
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
  const withCpus = cgroups.filter(({ cpus }) => cpus !== undefined);
  return (
    withCpus.find(({ limit }) => limit !== undefined) ?? withCpus[0] ?? { cpus: undefined, limit: undefined }
  );
}

function selfIn(root: string): Omit<KubeletFacts, 'found' | 'cpu'> {
  const paths = (textOf(join(root, '/proc/self/cgroup')) ?? '')
    .split('\n')
    .map((line) => line.replace(/^\d+:[^:]*:/, ''));
  const cgroup = paths.find((path) => podOfCgroup(path) !== undefined);
  const pod = cgroup === undefined ? undefined : podOfCgroup(cgroup);
  // The cgroup comes before the thread's mask, which may be pinned to a part by now.
  const { cpus, limit } = cgroupCpus(root, cgroup ?? '/');
  const mask = /^Cpus_allowed_list:\s*(\S+)$/m.exec(textOf(join(root, '/proc/self/status')) ?? '')?.[1];
  return {
    pod,
    isInContainer: pod !== undefined || !isInInitialCgroupNamespace(root),
    allowed: CpuSet.parse(cpus ?? mask ?? ''),
    cpuLimit: limit,
  };
}

/**
 * `root`: the folder with the machine's files, for tests. In a container only mounted files can be
 * seen.
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
  // Searched only if the usual folder has no files: there can be thousands of processes.
  const process = files.length > 0 ? undefined : findProcess(root);
  if (process?.rootDir !== undefined) [rootDir, files] = [process.rootDir, filesIn(process.rootDir)];
  const self = selfIn(root);
  const signs = [
    ...files,
    ...(service === undefined ? [] : [`${service}.service`]),
    ...(process ? [process.what] : []),
    ...(self.pod ? [`this process is in pod ${self.pod.uid}`] : []),
  ];
  const hasCpuState = files.includes(join(rootDir, CPU_MANAGER_STATE));
  return { found: signs, cpu: hasCpuState ? cpuStateIn(join(root, rootDir)) : undefined, ...self };
}
