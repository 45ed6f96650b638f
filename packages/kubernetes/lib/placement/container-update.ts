// ContainerUpdate: an update of a container by another client, on top of what it has. Pure.
import { CpuSet } from 'numalign';
import type { Container, LinuxResources } from '../nri/messages.js';

/** The container with the resources after an update; what the update leaves out stays. */
export function withResources(container: Container, resources: LinuxResources | null): Container {
  const before = container.linux?.resources;
  return {
    ...container,
    linux: {
      ...container.linux,
      resources: {
        ...before,
        cpu: { ...before?.cpu, ...fieldsOf(resources?.cpu) },
        memory: { ...before?.memory, ...fieldsOf(resources?.memory) },
        hugepage_limits: resources?.hugepage_limits.length
          ? resources.hugepage_limits
          : (before?.hugepage_limits ?? []),
      },
    },
  } as Container;
}

/** The CPUs that an update chooses; null: none. */
export function chosenCpusOf(resources: LinuxResources | null): CpuSet | null {
  const cpus = resources?.cpu?.cpus ?? '';
  return cpus === '' ? null : CpuSet.parse(cpus);
}

// CRI cannot distinguish 0 from unset, and runtimes take it for unset.
const isSet = (value: unknown): boolean =>
  typeof value === 'object' ? Boolean((value as { value?: unknown } | null)?.value) : value !== '';

const fieldsOf = (message: object | null | undefined) =>
  Object.fromEntries(Object.entries(message ?? {}).filter(([, value]) => isSet(value)));
