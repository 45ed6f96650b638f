// numalign topology: shows a machine, and which grants hold its CPUs.
import type { Command } from 'commander';
import { NumalignError } from 'numalign';
import type { StateStatus } from 'numalign/diagnostics';
import type { Topology } from 'numalign/topology';
import { outputOption } from '../arguments/arguments.js';
import { MACHINE_STATE_DIR, stateDirOption } from '../arguments/state-dir.js';
import { statusIn } from '../arguments/view.js';
import { type MachineFlags, machineOf, machineOptions } from '../pages/machine.js';
import { type StateNote, stateTitle } from '../pages/state-lines.js';
import { checkSvg, printWithSvg, type SvgFlags, svgOption } from '../terminal/svg-file.js';
import { stdoutPage } from '../terminal/terminal.js';
import { formatJson } from '../terminal/text.js';

interface TopologyFlags extends MachineFlags, SvgFlags {
  stateDir?: string;
}

export function addTopology(program: Command): void {
  const command = program
    .command('topology')
    .description(
      'Show packages, NUMA nodes, L3 groups, cores, CPUs and PCI devices of this machine, or of one that you describe.',
    );
  for (const option of machineOptions()) command.addOption(option);
  command
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addOption(svgOption())
    .addHelpText(
      'after',
      `
Reads only, and needs no rights. A machine that you describe has no state.

JSON: numCpus, numCores, numSockets, numNumaNodes, numUncoreCaches, columns, cpus, nodes, devices, possible, isolated, allowed; with a state also
stateDir, refusal, sharedPool, free, freeIsolated, reserved, grants. --json reads it.

Exit code: 0 on success; 1 for an error, such as a file that describes no machine; 2 for a wrong command line.

Examples:
  $ numalign topology
  $ numalign topology --synthetic 'package:2 numa:2 l3:2 core:4 pu:2'
  $ numalign topology --output json > machine.json
  $ numalign topology --json machine.json
  $ numalign topology --svg machine.svg`,
    )
    .action((flags: TopologyFlags) => {
      checkSvg(command, flags);
      return showTopology(flags);
    });
}

async function showTopology({ output, stateDir, svg, ...source }: TopologyFlags): Promise<void> {
  const topology = await machineOf(source);
  const state = topology.isSimulated ? undefined : await look(topology, stateDir);
  const text = async () =>
    output === 'text'
      ? (await import('../pages/topology-tree.js')).topologyTree(topology, {
          ...stdoutPage(),
          ...(state && { state }),
        })
      : formatJson({ ...topology.toJSON(), ...(state && 'status' in state && stateJson(state.status)) });
  await printWithSvg(text, svg, () => pictureOf(topology, state));
}

async function pictureOf(topology: Topology, state: StateNote | undefined): Promise<string> {
  const { holdingsOf, machinePicture } = await import('@numalign/page/picture');
  if (!state || 'note' in state) return machinePicture(topology, state);
  const { status } = state;
  return machinePicture(topology, { holdings: holdingsOf(status), note: stateTitle(status) });
}

// The tree is useful even without the machine's state. An error of --state-dir ends the command.
async function look(topology: Topology, folder: string | undefined): Promise<StateNote> {
  try {
    const status = await statusIn({ stateDir: folder ?? MACHINE_STATE_DIR, topology });
    return status.exists ? { status } : { note: `no state in ${status.stateDir}: nothing is granted` };
  } catch (error) {
    if (!(error instanceof NumalignError) || folder !== undefined) throw error;
    return { note: `${error.message} [${error.code}]` };
  }
}

function stateJson({ stateDir, refusal, sharedPool, free, freeIsolated, settings, grants }: StateStatus) {
  const reserved = settings.reservedSystemCPUs;
  return { stateDir, refusal: refusal?.message ?? null, sharedPool, free, freeIsolated, reserved, grants };
}
