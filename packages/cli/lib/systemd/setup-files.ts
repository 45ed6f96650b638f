// SetupFiles: the files that `numalign setup` writes for systemd, without their heads. Pure.
import type { Launcher } from '../terminal/installed.js';
import { AGENT_UNIT } from './agent-service.js';
import { GROUP, launch } from './service-unit.js';
import { BOOT_UNIT } from './unit-name.js';

export const SLICE = 'numalign.slice';

export const SYSUSERS = '/etc/sysusers.d/numalign.conf';
export const TMPFILES = '/etc/tmpfiles.d/numalign.conf';
export const UNITS = '/etc/systemd/system';

const FOREIGN_GROUP = '# The group was there before.\n';

/** True if the group existed before the file that makes it. */
export const isForeignGroup = (sysusers: string) => sysusers.startsWith(FOREIGN_GROUP);

/** The settings in a boot unit. */
export const settingsOf = (bootUnit: string) => / configure (.*)$/m.exec(bootUnit)?.[1];

export interface SetupFile {
  /** Relative to the root. */
  readonly path: string;
  readonly body: string;
}

export interface Setup {
  readonly launcher: Launcher;
  /** The options of `numalign configure` in the form of a unit; undefined: no boot unit. */
  readonly settings: string | undefined;
  /** The machine's state folder. */
  readonly stateDir: string;
  readonly hasForeignGroup: boolean;
}

export function setupFiles({ launcher, settings, stateDir, hasForeignGroup }: Setup): readonly SetupFile[] {
  return [
    { path: SYSUSERS, body: `${hasForeignGroup ? FOREIGN_GROUP : ''}g ${GROUP} -\n` },
    { path: TMPFILES, body: `d ${stateDir} 2770 root ${GROUP} -\n` },
    {
      path: `${UNITS}/${SLICE}`,
      body: `[Unit]
Description=Programs on CPUs of their own
`,
    },
    agentUnit(launcher),
    ...(settings === undefined ? [] : [bootUnit(launcher, settings)]),
  ];
}

// A path unit costs no memory, but is deaf while what it starts runs, and misses ends then; and Node
// starts at each. This starts again however often it has ended: systemd never gives it up.
const agentUnit = (launcher: Launcher): SetupFile => ({
  path: `${UNITS}/${AGENT_UNIT}`,
  body: `[Unit]
Description=Gives CPUs back whose owners have ended
After=${BOOT_UNIT}
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${launch(launcher, ['agent', '--no-listen', '--beside-kubelet'])}
Restart=always
RestartSec=2
OOMScoreAdjust=-500

[Install]
WantedBy=multi-user.target
`,
});

const bootUnit = (launcher: Launcher, settings: string): SetupFile => ({
  path: `${UNITS}/${BOOT_UNIT}`,
  body: `[Unit]
Description=Settings of numalign

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=${launch(launcher, ['configure', { specifiers: settings }])}

[Install]
WantedBy=multi-user.target
`,
});
