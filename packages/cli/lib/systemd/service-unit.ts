// ServiceUnit: the systemd unit of a program on exclusive CPUs. Pure.
import type { Launcher } from '../terminal/installed.js';
import { BOOT_UNIT, serviceName } from './unit-name.js';
import { commandWord, literal, programWord } from './unit-word.js';

export interface Service {
  /** Without suffix; a template ends in `@`. */
  readonly name: string;
  /** Can have specifiers. */
  readonly description: string;
  readonly type: string;
  readonly restart: string;
  readonly slice: string;
  readonly user: string | undefined;
  readonly workingDirectory: string;
  /**
   * A private state folder; undefined for the machine's, which needs the group and the boot unit.
   */
  readonly stateDir: string | undefined;
  /** The CPUs that the unit has to itself. */
  readonly partition: Partition | undefined;
  /** The options of `numalign run`. */
  readonly options: readonly UnitWord[];
  readonly command: readonly string[];
}

/** CPUs of a cpuset partition, which systemd makes of the unit's cgroup. */
export interface Partition {
  readonly cpus: string;
  /** Undefined for a systemd that cannot: the unit keeps to the CPUs, and others may use them too. */
  readonly type?: 'root' | 'isolated';
}

/** The first release of systemd with `CPUSetPartition=`. */
export const PARTITION_RELEASE = 261;

/** A word of the command line: a text, or one in which systemd replaces specifiers. */
export type UnitWord = string | { readonly specifiers: string };

export const GROUP = 'numalign';

/** The command line that starts numalign. */
export function launch({ node, main }: Launcher, words: readonly UnitWord[]): string {
  const rest = words.map((word) => (typeof word === 'string' ? commandWord(word) : word.specifiers));
  return [programWord(node), commandWord(main), ...rest].join(' ');
}

export function serviceUnit(service: Service, launcher: Launcher): string {
  const { name, type, user, stateDir, partition, options, command } = service;
  const isOfMachine = stateDir === undefined;
  const folder = isOfMachine ? [] : ['--state-dir', stateDir];
  const settings = [
    `Type=${type}`,
    // With --type notify the program or a child of it sends the notification.
    ...(type === 'notify' ? ['NotifyAccess=all'] : []),
    `ExecStart=${launch(launcher, ['run', ...options, '--', ...command])}`,
    // No process watches the program. This shares its CPUs again at once, not only when another
    // process opens the state. A failure here is not a failure of the program.
    `ExecStopPost=-${launch(launcher, ['release', '--dead', ...folder])}`,
    `WorkingDirectory=${literal(service.workingDirectory)}`,
    ...(user === undefined ? [] : [`User=${user}`]),
    ...(user !== undefined && isOfMachine ? [`SupplementaryGroups=${GROUP}`] : []),
    `Slice=${service.slice}`,
    ...(partition ? [`AllowedCPUs=${partition.cpus}`] : []),
    ...(partition?.type ? [`CPUSetPartition=${partition.type}`] : []),
    'Delegate=cpuset',
    'KillMode=mixed',
    `Restart=${service.restart}`,
  ];
  return `# /etc/systemd/system/${serviceName(name)}
[Unit]
Description=${service.description}
${isOfMachine ? `Wants=${BOOT_UNIT}\nAfter=${BOOT_UNIT}\n` : ''}
[Service]
${settings.join('\n')}

[Install]
WantedBy=multi-user.target
`;
}
