// The handlers of a node on a simulated machine, with cgroups that are files in a folder.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Manager, type ManagerOptions, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { onTestFinished } from 'vitest';
import { CpusetFiles } from '../../lib/cgroups/cpuset-files.js';
import type { FindClaim } from '../../lib/claims/claimed-holdings.js';
import { ContainerHandlers } from '../../lib/containers/container-handlers.js';
import { Reports } from '../../lib/containers/reports.js';
import type { NodeEvent } from '../../lib/events/event.js';
import { NO_METRICS } from '../../lib/metrics/metrics.js';
import type { ContainerUpdate } from '../../lib/nri/messages.js';
import type { RestoreAllocation } from '../../lib/placement/allocation.js';
import { type ContainerPolicy, NO_POLICY } from '../../lib/placement/container-policy.js';
import type { FindManifest } from '../../lib/placement/whole-pod.js';

/** Two NUMA nodes of four cores: node 0 has CPUs 0-3, node 1 has 4-7. */
export const MACHINE = 'numa:2(memory=8GB) core:4 pu:1';

export interface SimulatedNode {
  readonly manager: Manager;
  readonly handlers: ContainerHandlers;
  readonly cgroups: string;
  /** What was logged, as `level: message`. */
  readonly lines: string[];
  /** What the runtime was told outside of an answer. */
  readonly told: ContainerUpdate[];
  readonly events: NodeEvent[];
  /** Another plugin on the same machine, like after a restart. */
  restart(): ContainerHandlers;
  /** Makes the cgroup of a container, with these processes in it. */
  makeCgroup(cgroupsPath: string, cpus: string, pids?: readonly number[]): void;
  /** Its last process has ended. */
  endCgroup(cgroupsPath: string): void;
  cpusOf(cgroupsPath: string): string;
}

export async function simulatedNode(
  options: ManagerOptions = {},
  machine = MACHINE,
  restore?: RestoreAllocation,
  findManifest?: FindManifest,
  policy: () => ContainerPolicy = () => NO_POLICY,
  findClaim?: FindClaim,
): Promise<SimulatedNode> {
  const topology = await discover({ synthetic: machine });
  const manager = await openManager({ topology, ...options });
  const cgroups = mkdtempSync(join(tmpdir(), 'numalign-node-'));
  const lines: string[] = [];
  const log = (level: string, message: string) => void lines.push(`${level}: ${message}`);
  const told: ContainerUpdate[] = [];
  const events: NodeEvent[] = [];
  const recordEvent = (event: NodeEvent) => void events.push(event);
  const open: ContainerHandlers[] = [];
  const start = () => {
    const handlers = new ContainerHandlers({
      manager,
      prefix: 'numalign',
      cpusets: new CpusetFiles(cgroups),
      restoreAllocation: async (allocation, container) => (await restore?.(allocation, container)) ?? false,
      policy,
      findManifest,
      findClaim,
      tell: async (update) => void told.push(update),
      ...{ log, reports: new Reports({ prefix: 'numalign', log, metrics: NO_METRICS, recordEvent }) },
    });
    open.push(handlers);
    return handlers;
  };
  onTestFinished(() => {
    for (const handlers of open) handlers.close();
    manager.close();
    rmSync(cgroups, { recursive: true });
  });
  const file = (cgroupsPath: string) => join(cgroups, cgroupsPath, 'cpuset.cpus');
  return {
    manager,
    handlers: start(),
    cgroups,
    lines,
    told,
    events,
    restart: start,
    makeCgroup: (cgroupsPath, cpus, pids = []) => {
      mkdirSync(dirname(file(cgroupsPath)), { recursive: true });
      writeFileSync(file(cgroupsPath), cpus);
      if (pids.length > 0) writeFileSync(join(cgroups, cgroupsPath, 'cgroup.procs'), pids.join('\n'));
    },
    endCgroup: (cgroupsPath) => writeFileSync(join(cgroups, cgroupsPath, 'cgroup.procs'), ''),
    cpusOf: (cgroupsPath) => readFileSync(file(cgroupsPath), 'utf8'),
  };
}

/** CPUs by container, from an answer. */
export const cpusByContainer = (updates: readonly ContainerUpdate[]) =>
  Object.fromEntries(updates.map(({ container_id, linux }) => [container_id, linux.resources.cpu?.cpus]));
