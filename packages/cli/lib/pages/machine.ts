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
