// Checks the options of openManager and makes a frozen Config of them.
import { resolve } from 'node:path';
import type { EnforcementRequest } from '../account/levels.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import { Topology } from '../machine/topology.js';
import type { DeviceSelection } from './devices.js';
import { type AimedLevel, DEFAULT_ENFORCEMENT, parseEnforcement } from './enforcement-options.js';
import { type GivenSettings, parseSettings } from './given-settings.js';
import { fieldName, fromKubeletConfiguration } from './kubelet-configuration.js';
import { MACHINE_OPTIONS, type MachineOptions, STRICT } from './machine-options.js';
import { namesOf } from './option-table.js';
import { type Placement, parsePlacement } from './placement.js';
import { PLACEMENT_OPTIONS, type PlacementOptions } from './placement-options.js';
import { parseDuration } from './values/duration.js';
import { allOf, option, parseFlag } from './values/option-values.js';

export { MACHINE_CGROUP_ROOT, MACHINE_STATE_DIR } from './values/machine-folder.js';

/**
 * The options of {@link openManager}. With `optional: true`, it returns an {@link EmptyManager} if
 * the machine cannot be opened, instead of throwing.
 */
export interface ManagerOptions extends MachineOptions, PlacementOptions {
  /**
   * The state folder, an absolute path. A manager with another folder is private: it knows only the
   * processes that share that folder. A simulated machine keeps its state in memory by default.
   * @default `/run/numalign`; with the variable `NUMALIGN_STATE_DIR`, that folder
   */
  stateDir?: string;
  /**
   * The machine, as {@link discover} returns it.
   * @default this machine
   */
  topology?: Topology;
  /**
   * A parsed KubeletConfiguration document, see [its fields](#kubeletconfiguration). Other options
   * take precedence.
   * @default none
   */
  kubeletConfiguration?: object;
  /**
   * Devices by resource, as {@link Manager.registerDevices} takes them. See docs/devices.md.
   * @default none
   */
  devices?: Readonly<Record<string, DeviceSelection>>;
  /**
   * How long to wait for the lock of the state, in milliseconds, up to 2,147,483,647. Then the call
   * throws ERR_LOCK_TIMEOUT.
   * @default 10,000
   */
  lockTimeoutMs?: number;
  /**
   * How often to compare the machine with the record and repair it ({@link Manager.reconcile}),
   * besides after every change: milliseconds, or a duration such as `'10s'`, give or take a tenth.
   * 0: only when you call it.
   * @default `'30s'`
   */
  cpuManagerReconcilePeriod?: number | string;
  /**
   * Makes this process a shared member: it leaves CPUs that become exclusive, except its own
   * grants.
   * @default `true`
   */
  sharedMember?: boolean;
  /**
   * The strongest enforcement level that grants aim at, see docs/enforcement.md.
   * @default `partition`
   */
  enforcement?: AimedLevel;
  /**
   * What happens if a shared member cannot be moved. `fail` rejects the request. `report` grants it
   * at the level `recorded`, with a warning.
   * @default `fail`
   */
  unmovableMembers?: 'fail' | 'report';
  /**
   * Opens the machine although a kubelet may give the same CPUs away. Otherwise that is
   * ERR_KUBELET_CONFLICT. See docs/kubelet.md.
   * @default `false`
   */
  besideKubelet?: boolean;
  /**
   * `true` returns a {@link ManagerView}, see {@link ViewOptions}.
   * @default `false`
   */
  readOnly?: false;
}

export interface Config {
  /** undefined: the machine's folder, or none for a simulated machine. null: a view without one. */
  readonly stateDir: string | null | undefined;
  readonly topology: Topology | undefined;
  readonly settings: GivenSettings;
  readonly placement: Placement;
  readonly devices: Readonly<Record<string, DeviceSelection>>;
  readonly lockTimeoutMs: number;
  readonly reconcilePeriodMs: number;
  readonly sharedMember: boolean;
  readonly enforcement: EnforcementRequest;
  readonly besideKubelet: boolean;
  readonly readOnly: boolean;
}

// The kubelet's period is 10 s. Here events announce commits and offline CPUs: only changes of
// masks and cgroups by others wait for this period, and each look wakes the process.
const RECONCILE_PERIOD_MS = 30_000;
const OTHER_OPTIONS = allOf<
  Exclude<keyof ManagerOptions, keyof MachineOptions | keyof PlacementOptions> | 'optional'
>()([
  'kubeletConfiguration',
  'stateDir',
  'topology',
  'devices',
  'lockTimeoutMs',
  'cpuManagerReconcilePeriod',
  'sharedMember',
  'enforcement',
  'unmovableMembers',
  'besideKubelet',
  'readOnly',
  'optional',
]);

/** The names of {@link ManagerOptions}. */
export const MANAGER_OPTIONS: readonly string[] = [
  ...Object.keys(MACHINE_OPTIONS),
  ...namesOf(PLACEMENT_OPTIONS, 'manager'),
  ...OTHER_OPTIONS,
];

// Why a text is no path, as a user of a shell writes one.
function pathText(path: unknown): string {
  if (path === '') return "an absolute path, or left out for the machine's folder";
  if (typeof path !== 'string') return 'an absolute path';
  if (path.startsWith('~')) return 'an absolute path (only shells replace ~: use os.homedir())';
  if (path.startsWith('/')) return 'a path that Linux can have: 4095 bytes, 255 a name, without NUL';
  return 'an absolute path, such as path.resolve() returns';
}

// Linux: PATH_MAX and NAME_MAX.
const isPath = (value: unknown): value is string =>
  typeof value === 'string' &&
  value.startsWith('/') &&
  !value.includes('\0') &&
  value.length < 4096 &&
  value.split('/').every((name) => name.length < 256);

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseConfig(
  options: Omit<ManagerOptions, 'readOnly' | 'stateDir'> & {
    readonly readOnly?: boolean;
    readonly stateDir?: string | null;
  },
): Config {
  const fields = checkOptions(options, MANAGER_OPTIONS, 'openManager');
  const values: Record<string, unknown> =
    fields.kubeletConfiguration === undefined
      ? fields
      : withKubeletConfiguration(fields, fields.kubeletConfiguration);
  const { stateDir, topology, devices = {}, lockTimeoutMs = 10_000 } = values;
  if (option.optional(values.optional, 'optional', option.flag) && values.readOnly)
    invalidOption('optional', true, 'left out with readOnly: a view gets no grants');
  const isNone = stateDir === null && values.readOnly === true;
  if (stateDir !== undefined && !isPath(stateDir) && !isNone) {
    invalidOption('stateDir', stateDir, pathText(stateDir));
  }
  if (topology !== undefined && !(topology instanceof Topology)) {
    invalidOption('topology', topology, 'a Topology, as discover() returns it');
  }
  if (typeof lockTimeoutMs !== 'number' || !(lockTimeoutMs >= 0 && lockTimeoutMs <= 2 ** 31 - 1)) {
    invalidOption('lockTimeoutMs', lockTimeoutMs, 'a number of milliseconds from 0 to 2147483647');
  }
  if (!isObject(devices) || Symbol.iterator in devices) {
    invalidOption(
      'devices',
      devices,
      "selections by resource, such as { 'example.com/nic': { class: '0200' } }",
    );
  }
  return Object.freeze({
    stateDir: isPath(stateDir) ? resolve(stateDir) : isNone ? null : undefined,
    topology,
    // What the document sets has its name there.
    placement: parsePlacement(values, undefined, (name) =>
      fields[name] === undefined ? fieldName(name) : name,
    ),
    settings: parseSettings(values),
    devices: { ...devices } as Config['devices'],
    lockTimeoutMs,
    reconcilePeriodMs: parseDuration(
      'cpuManagerReconcilePeriod',
      values.cpuManagerReconcilePeriod ?? RECONCILE_PERIOD_MS,
    ),
    sharedMember: option.optional(values.sharedMember, 'sharedMember', option.flag) ?? true,
    enforcement: Object.freeze({ ...DEFAULT_ENFORCEMENT, ...parseEnforcement(values) }),
    besideKubelet: option.optional(values.besideKubelet, 'besideKubelet', option.flag) ?? false,
    readOnly: option.optional(values.readOnly, 'readOnly', option.flag) ?? false,
  });
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;
const withoutUndefined = (options: object) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

// Fills in options from the document. Other options take precedence, reserved amounts resource by
// resource.
function withKubeletConfiguration(
  fields: Record<string, unknown>,
  document: unknown,
): Record<string, unknown> {
  const kubelet = fromKubeletConfiguration(document);
  const { [STRICT]: strict, ...cpuOptions } = kubelet.cpuManagerPolicyOptions as Record<string, unknown>;
  const values = withoutUndefined(fields);
  const defaults: Record<string, unknown> = { ...kubelet, cpuManagerPolicyOptions: cpuOptions };

  // The option has two names.
  const cpuOptionValues = isObject(values.cpuManagerPolicyOptions)
    ? withoutUndefined(values.cpuManagerPolicyOptions)
    : {};
  if (strict !== undefined && !('strictCPUReservation' in values) && !(STRICT in cpuOptionValues)) {
    if ((values.cpuManagerPolicy ?? kubelet.cpuManagerPolicy) === 'none') {
      invalidOption(STRICT, strict, 'left out with the CPU policy none');
    }
    defaults.strictCPUReservation = parseFlag(strict, STRICT);
  }
  for (const name of ['systemReserved', 'kubeReserved'] as const) {
    if (!isObject(values[name])) continue;
    const amounts = withoutUndefined(values[name]);
    values[name] = { ...(kubelet[name] as object), ...amounts };
    // An amount of CPUs beside the document takes precedence over the list in it.
    if ('cpu' in amounts) delete defaults.reservedSystemCPUs;
  }
  if (isObject(values.featureGates)) {
    values.featureGates = { ...(kubelet.featureGates as object), ...withoutUndefined(values.featureGates) };
  }
  // For the kubelet 0 stands for the default.
  const period = kubelet.cpuManagerReconcilePeriod;
  if (period !== undefined && parseDuration('cpuManagerReconcilePeriod', period) === 0) {
    delete defaults.cpuManagerReconcilePeriod;
  }
  return { ...defaults, ...values };
}
