// The machine that a command shows: this one, or one that the user describes.
import { Option } from 'commander';
import type { DiscoverOptions, Topology } from 'numalign/topology';

export interface MachineFlags {
  xml?: string;
  synthetic?: string;
  json?: string;
}

/** Described machines have no state. */
export function machineOptions(): Option[] {
  const others = (flag: string) => ['xml', 'synthetic', 'json', 'stateDir'].filter((name) => name !== flag);
  return [
    new Option('--xml <file>', 'a machine saved by hwloc (lstopo machine.xml)').conflicts(others('xml')),
    new Option('--synthetic <description>', "a machine in hwloc's synthetic form").conflicts(
      others('synthetic'),
    ),
    new Option('--json <file>', 'a machine as `numalign topology --output json` prints it').conflicts(
      others('json'),
    ),
  ];
}

/** The machine of the flags. @throws ERR_INVALID_TOPOLOGY */
export async function machineOf({ xml, synthetic, json }: MachineFlags): Promise<Topology> {
  const { discover } = await import('numalign/topology');
  const source: DiscoverOptions = {
    ...(xml !== undefined && { xml }),
    ...(synthetic !== undefined && { synthetic }),
    ...(json !== undefined && { json }),
  };
  return discover(source);
}

/**
 * What to say if slow cores may count as fast ones: they differ in threads, as P-cores and E-cores do,
 * no CPU is offline, and nothing tells their kinds. Undefined otherwise.
 */
export function kindsNote({ coreKinds, cores, cpus, possible, isUniform, source }: Topology) {
  if (coreKinds.length > 1 || isUniform || !possible.isSubsetOf(cpus)) return undefined;
  const threads = [...new Set(cores.map((core) => core.cpus.size))].sort((a, b) => a - b);
  const found = `cores have ${threads.join(' or ')} CPUs, and`;
  if (source === 'machine') return `${found} Linux names no kinds of cores: all count as alike`;
  const remedy =
    'if some are slower, describe the machine again, or add the column coreKind (more is faster)';
  return `${found} the description names no kinds of cores: all count as alike; ${remedy}`;
}
