// ServiceUnit: a program on CPUs of its own as a unit of systemd. Pure.
import { BOOT_UNIT, serviceName } from './unit-name.js';
import { commandWord, literal, programWord } from './unit-word.js';

/** Where numalign is: the paths of Node and of the command line's entry. */
export interface Launcher {
  readonly node: string;
  readonly main: string;
}

export interface Service {
  /** Without suffix; with `@` at its end a template. */
  readonly name: string;
  /** With specifiers. */
  readonly description: string;
  readonly type: string;
  readonly restart: string;
  readonly slice: string;
  readonly user: string | undefined;
  readonly workingDirectory: string;
  /** A private state's folder; of the machine's, which needs the group and is set up at boot, undefined. */
  readonly stateDir: string | undefined;
  /** The options of `numalign run`; words that are text, or have specifiers. */
  readonly options: readonly UnitWord[];
  readonly command: readonly string[];
}

/** A word of the command line: a text, or one in which systemd replaces specifiers. */
export type UnitWord = string | { readonly specifiers: string };

export const GROUP = 'numalign';

/** The command line that starts numalign. */
export function launch({ node, main }: Launcher, words: readonly UnitWord[]): string {
  const rest = words.map((word) => (typeof word === 'string' ? commandWord(word) : word.specifiers));
  return [programWord(node), commandWord(main), ...rest].join(' ');
}

export function serviceUnit(service: Service, launcher: Launcher): string {
  const { name, type, user, stateDir, options, command } = service;
  const isOfMachine = stateDir === undefined;
  const folder = isOfMachine ? [] : ['--state-dir', stateDir];
  const settings = [
    `Type=${type}`,
    // With --type notify it is the program that tells, or a child of it.
    ...(type === 'notify' ? ['NotifyAccess=all'] : []),
    `ExecStart=${launch(launcher, ['run', ...options, '--', ...command])}`,
    // No process watches the program. Its CPUs are to be shared again at once, and not only when
    // another process opens the state. A failure here is no failure of the program.
    `ExecStopPost=-${launch(launcher, ['release', '--dead', ...folder])}`,
    `WorkingDirectory=${literal(service.workingDirectory)}`,
    ...(user === undefined ? [] : [`User=${user}`]),
    ...(user !== undefined && isOfMachine ? [`SupplementaryGroups=${GROUP}`] : []),
    `Slice=${service.slice}`,
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
