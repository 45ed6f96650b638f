// ReadFacts: reads the facts of a node. Only looks.
import { accessSync, constants, existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MACHINE_STATE_DIR } from 'numalign';
import {
  CPU_MANAGER_STATE,
  MEMORY_MANAGER_STATE,
  parseCpuManagerState,
  parseMemoryManagerState,
} from 'numalign/kubelet';
import { areProcessesHidden } from '../cgroups/hidden-processes.js';
import { ContainerRuntime } from '../cri/container-runtime.js';
import { findRuntimeSocket, RUNTIME_SOCKETS } from '../cri/runtime-sockets.js';
import { KUBELET_FOLDER } from '../kubelet/pod-resources.js';
import { findNeighbours } from '../neighbours/neighbours.js';
import { NRI_SOCKET } from '../nri/plugin.js';
import type { CheckOptions } from './check-options.js';
import { readCluster } from './cluster-facts.js';
import { isNriDisabled, requiredPlugins } from './containerd-configuration.js';
import type { CgroupFacts, KubeletFacts, NodeFacts, RuntimeFacts } from './node-facts.js';
import { socketFacts } from './socket-facts.js';

const UNITS = ['/etc/systemd/system', '/lib/systemd/system', '/usr/lib/systemd/system'];

/** The usual places on a machine. */
export const DEFAULT_PLACES = {
  nriSocket: NRI_SOCKET,
  runtimeEndpoint: RUNTIME_SOCKETS[0],
  containerdConfiguration: '/etc/containerd/config.toml',
  kubeletFolder: KUBELET_FOLDER,
  cgroupMount: '/sys/fs/cgroup',
} as const;

/** `ask` returns the runtime behind a socket. */
export async function readNodeFacts(
  options: CheckOptions,
  ask: (socketPath: string) => Promise<RuntimeFacts> = askRuntime,
): Promise<NodeFacts> {
  const {
    nriSocket = DEFAULT_PLACES.nriSocket,
    runtimeEndpoint = knownSocket(),
    containerdConfiguration: configuration = DEFAULT_PLACES.containerdConfiguration,
    kubeletFolder = DEFAULT_PLACES.kubeletFolder,
    stateDir = MACHINE_STATE_DIR,
    cgroupMount = DEFAULT_PLACES.cgroupMount,
    neighbours,
    pluginName = 'numalign',
    publish,
    refusals,
    claims,
  } = options;
  const ofCluster = publish ?? refusals ?? claims;
  const text = textOf(configuration);
  const runtime = await socketFacts(runtimeEndpoint.replace(/^unix:\/\//, ''));
  return {
    nri: nriSocket === null ? null : await socketFacts(nriSocket),
    runtime,
    runtimeVersion: runtime.state === 'listens' ? await versionOf(runtime.path, ask) : null,
    isNriDisabled: typeof text === 'string' ? isNriDisabled(text) : null,
    requiredPlugins: typeof text === 'string' ? requiredPlugins(text) : [],
    neighbours: nriSocket === null ? [] : await findNeighbours({ socketPath: nriSocket, ...neighbours }),
    ...{ configuration, pluginName },
    cgroups: cgroupFacts(cgroupMount),
    kubelet: await kubeletFacts(kubeletFolder),
    stateFolder: { path: stateDir, refusal: refusalOf(stateDir) },
    user: process.getuid!(),
    cluster: ofCluster
      ? await readCluster(ofCluster, publish !== undefined, refusals?.mode, claims !== undefined)
      : null,
  };
}

function knownSocket(): string {
  try {
    return findRuntimeSocket();
  } catch {
    return DEFAULT_PLACES.runtimeEndpoint;
  }
}

async function askRuntime(socketPath: string): Promise<RuntimeFacts> {
  const runtime = new ContainerRuntime({ socketPath });
  try {
    return await runtime.version();
  } finally {
    runtime.close();
  }
}

// A runtime that does not answer is reported with its socket.
async function versionOf(path: string, ask: typeof askRuntime): Promise<RuntimeFacts | null> {
  try {
    const { name, version } = await ask(path);
    return { name, version };
  } catch {
    return null;
  }
}

// Undefined if there is no such file.
function textOf(path: string): string | { readonly error: string } | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : { error: message };
  }
}

function cgroupFacts(mount: string): CgroupFacts {
  const unified = textOf(join(mount, 'cgroup.controllers'));
  if (typeof unified === 'string')
    return { version: 2, controllers: unified.trim().split(' '), areProcessesHidden: areProcessesHidden(2) };
  const facts = { version: 1, areProcessesHidden: areProcessesHidden(1) } as const;
  try {
    return { ...facts, controllers: readdirSync(mount).flatMap((name) => name.split(',')) };
  } catch {
    return { ...facts, controllers: [] };
  }
}

async function kubeletFacts(folder: string): Promise<KubeletFacts> {
  return {
    folder,
    exists: existsSync(folder),
    cpuPolicy: policyIn(
      join(folder, CPU_MANAGER_STATE),
      (text) => parseCpuManagerState(text, LENIENT).policyName,
    ),
    memoryPolicy: policyIn(
      join(folder, MEMORY_MANAGER_STATE),
      (text) => parseMemoryManagerState(text, LENIENT).policyName,
    ),
    devicePlugins: await socketFacts(join(folder, 'device-plugins/kubelet.sock')),
    podResources: await socketFacts(join(folder, 'pod-resources/kubelet.sock')),
    isService:
      existsSync('/run/systemd/system') && UNITS.some((unit) => existsSync(join(unit, 'kubelet.service'))),
  };
}

const LENIENT = { podLevelResourceManagers: true, allowUnverified: true };

function policyIn(path: string, parse: (text: string) => string): KubeletFacts['cpuPolicy'] {
  const text = textOf(path);
  if (typeof text !== 'string') return text ?? null;
  // An empty file counts as none: the kubelet starts over.
  if (text === '') return null;
  try {
    return parse(text);
  } catch (error) {
    return { error: `${path}: ${(error as Error).message}` };
  }
}

// numalign makes the folder if it does not exist.
function refusalOf(path: string): string | null {
  const folder = existsSync(path) ? path : dirname(path);
  try {
    if (!statSync(folder).isDirectory()) return 'it is not a folder';
    accessSync(folder, constants.W_OK | constants.X_OK);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
}
