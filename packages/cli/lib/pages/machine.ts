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
export function kindsNote(topology: Topology): string | undefined {
  const { coreKinds, cores, cpus, possible, isUniform, source } = topology;
  if (coreKinds.length > 1 || isUniform || !possible.isSubsetOf(cpus)) return undefined;
  const threads = [...new Set(cores.map((core) => core.cpus.size))].sort((a, b) => a - b);
  const found = `cores have ${threads.join(' or ')} CPUs, and`;
  if (source === 'machine') return `${found} Linux names no kinds of cores: all count as alike`;
  const unnamed = `${found} the description names no kinds of cores:`;
  if (likelyPCores(topology))
    return `${unnamed} those of 2 count as performance cores, as the numbers of the CPUs suggest; the column coreKind (more is faster) says otherwise`;
  return `${unnamed} all count as alike; if some are slower, describe the machine again, or add the column coreKind (more is faster)`;
}

/**
 * The number of P-cores if a description without kinds has cores as Linux numbers those of hybrid
 * processors: P-cores of two threads, and behind them at least one module of four E-cores. Where SMT
 * is off in part, numbers are missing, or second threads come after such cores.
 */
function likelyPCores({ coreKinds, packages, cores, source }: Topology): number | undefined {
  const count = cores.findIndex((core) => core.cpus.size === 1);
  const cpusOf = (core: number) => (core < count ? `${2 * core}-${2 * core + 1}` : `${core + count}`);
  const isOne = source !== 'machine' && coreKinds.length === 1 && packages.length === 1;
  const isHybrid = isOne && count > 0 && cores.length >= count + 4;
  return isHybrid && cores.every(({ cpus }, i) => String(cpus) === cpusOf(i)) ? count : undefined;
}

/** The machine with the kinds of cores that its description does not name, as {@link kindsNote} says. */
export async function withLikelyKinds(topology: Topology): Promise<Topology> {
  const count = likelyPCores(topology);
  if (count === undefined) return topology;
  const { discover } = await import('numalign/topology');
  const { columns, cpus, ...rest } = topology.toJSON();
  const rows = cpus.map((row, cpu) => [...row, cpu < 2 * count ? 1 : 0]);
  return discover({ json: { ...rest, columns: [...columns, 'coreKind'], cpus: rows } });
}
