// The program: its commands.
import type { Command } from 'commander';
import { addAdmit } from './commands/admit.js';
import { addAgent } from './commands/agent.js';
import { addAttach } from './commands/attach.js';
import { addCompletion } from './commands/completion.js';
import { addConfigure } from './commands/configure.js';
import { addDefragment } from './commands/defragment.js';
import { addDoctor } from './commands/doctor.js';
import { addPlan } from './commands/plan.js';
import { addRelease } from './commands/release.js';
import { addSetup } from './commands/service/setup.js';
import { addSystemdUnit } from './commands/service/systemd-unit.js';
import { addUninstall } from './commands/service/uninstall.js';
import { addShare } from './commands/share.js';
import { addState } from './commands/state.js';
import { addStatus } from './commands/status.js';
import { addTop } from './commands/top.js';
import { addTopology } from './commands/topology.js';
import { type Commands, programOf, runIn } from './program-frame.js';
import { RUN } from './run-alone.js';
import { fillProse } from './terminal/text.js';

export { fillProse };

const COMMANDS: Commands = {
  ...RUN,
  plan: [addPlan, 'show where pods would go, here or on a machine that you describe'],
  status: [addStatus, 'show grants, their owners and the shared pool'],
  top: [addTop, 'show what happens on the CPUs of grants'],
  topology: [addTopology, 'show NUMA nodes, caches, cores, CPUs and devices'],
  admit: [addAdmit, 'give pods CPUs, memory and devices until you release them'],
  release: [addRelease, 'give back what a grant or pod holds'],
  attach: [addAttach, 'move a running process onto the CPUs of a grant'],
  share: [addShare, 'keep a process or cgroup in the shared pool'],
  defragment: [addDefragment, 'move grants that consent, so that one NUMA node gets room'],
  doctor: [addDoctor, 'check what numalign can do here, and how to fix what it cannot'],
  configure: [addConfigure, "change the machine's settings"],
  setup: [addSetup, 'install group, folder, slice, agent and boot unit for systemd'],
  uninstall: [addUninstall, 'remove what numalign has made on this machine'],
  'systemd-unit': [addSystemdUnit, 'print a systemd unit that runs a program on exclusive CPUs'],
  agent: [addAgent, 'free the CPUs of dead owners, repair drift, serve metrics'],
  state: [addState, "show the state file; export or import the kubelet's files"],
  completion: [addCompletion, 'print a completion script for your shell'],
};

/** @param only the only command to make: each of the others takes time */
export const createProgram = (only?: string): Command =>
  programOf(only === undefined ? COMMANDS : { [only]: COMMANDS[only]! });

export function runProgram(given: readonly string[]): Promise<void> {
  // Other programs have such a command.
  const argv = given[2] === 'version' ? given.with(2, '--version') : given;
  const [, , name = ''] = argv;
  // The completion script covers all commands.
  const isAlone = Object.hasOwn(COMMANDS, name) && name !== 'completion';
  return runIn(createProgram(isAlone ? name : undefined), argv);
}
