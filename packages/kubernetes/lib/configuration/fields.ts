// Fields: the one table of the configuration of numalign-node. Parser, flags, effective
// configuration and reference follow from it.
import { hostname } from 'node:os';
import { parseAddress } from '@numalign/page/listening';
import { MACHINE_STATE_DIR } from 'numalign';
import { DEFAULT_GATES, DEFAULT_VERSION, invalidOption, PLACEMENT_OPTIONS } from 'numalign/tools';
import { LOG_FORMATS, LOG_LEVELS } from '../base/log.js';
import { DEVICE_UNITS } from '../device-plugin/inventory.js';
import { DEVICE_UNITS as CLAIM_UNITS, DRIVER } from '../dra/devices.js';
import { CDI_FOLDER } from '../dra/preparation/cdi-files.js';
import { KUBELET_FOLDER } from '../kubelet/pod-resources.js';
import { NRI_SOCKET, SLICE_MODES } from '../node.js';
import { parseRules } from '../placement/rules.js';
import { REFUSAL_MODES } from '../refusals/refusals.js';
import { cpuList, cpuListOr, type Field, field, flag, flagOr, managerOption, oneOf, text } from './field.js';

export const PAGE = '127.0.0.1:9480';
export const LISTEN = '127.0.0.1:9481';
const MOST_GRANTS = 10_000;

const address = (value: unknown, name: string): string =>
  typeof value === 'string' && parseAddress(value)
    ? value
    : invalidOption(name, value, `an IP address and a port, such as ${PAGE}`);

// YAML takes two digits for a number. The plugin checks it.
const index = (value: unknown, name: string): string =>
  text(typeof value === 'number' ? String(value).padStart(2, '0') : value, name);

// A flag is a text.
const grantCount = (value: unknown, name: string): number =>
  /^\d{1,5}$/.test(String(value)) && Number(value) <= MOST_GRANTS
    ? Number(value)
    : invalidOption(name, value, `a whole number from 0 to ${MOST_GRANTS}`);

type PlacementName = keyof typeof PLACEMENT_OPTIONS;

/** An option of placement, as numalign's own table has it. */
function placement(
  name: PlacementName,
  words: string,
  more: Partial<Pick<Field<unknown>, 'flag' | 'part' | 'type'>> = {},
) {
  const row = PLACEMENT_OPTIONS[name] as { default?: unknown; check?: { values?: readonly string[] } };
  return field<unknown, undefined>({
    check: managerOption,
    default: undefined,
    defaultWords: row.default === undefined ? 'none' : String(row.default),
    type: row.check?.values?.join(', ') ?? (typeof row.default === 'boolean' ? 'true, false' : 'options'),
    words,
    flag: null,
    part: 'placement',
    ...more,
  });
}

/** A setting that all users of the machine share; `whenRemoved`: what it has without the field. */
const machine = <Value>(row: Omit<Field<Value>, 'part' | 'flag'> & Partial<Pick<Field<Value>, 'flag'>>) =>
  field<Value, Value | undefined>({ flag: null, ...row, part: 'machine' });

export const FIELDS = {
  policy: placement('policy', "the Topology Manager's policy", { flag: { usage: '--policy <policy>' } }),
  topologyManagerPolicyOptions: placement(
    'topologyManagerPolicyOptions',
    'options of that policy, by the name that the kubelet has for them',
  ),
  scope: placement('scope', 'whether containers or pods are aligned'),
  cpuManagerPolicy: placement('cpuManagerPolicy', "the CPU Manager's policy", { part: 'start' }),
  cpuManagerPolicyOptions: placement('cpuManagerPolicyOptions', 'options of that policy, as in the kubelet'),
  memoryManagerPolicy: placement('memoryManagerPolicy', "the Memory Manager's policy", { part: 'start' }),
  placement: placement('placement', 'NUMA nodes as the kubelet chooses them, or for all resources together'),
  prefer: placement('prefer', 'with `placement: joint`: nodes with the least free, or the most'),
  evenMemory: placement('evenMemory', 'books memory in equal parts on the NUMA nodes'),
  strictHugepages: placement('strictHugepages', 'counts only hugepages that the kernel has free'),
  coreKind: placement('coreKind', 'the kind of cores'),
  memoryTiers: placement('memoryTiers', 'the tiers of memory, in order', { type: 'tiers, or any' }),
  managedCPUs: machine({
    check: cpuListOr('all'),
    default: null,
    defaultWords: 'all',
    type: 'CPUs, or all',
    words: 'CPUs that numalign grants or shares',
  }),
  reservedSystemCPUs: machine({
    check: cpuList,
    default: '',
    defaultWords: 'none',
    type: 'CPUs',
    words: 'CPUs that are never exclusive',
    flag: { usage: '--reserved <cpus>' },
  }),
  systemReserved: machine<unknown>({
    check: managerOption,
    default: undefined,
    defaultWords: 'none',
    type: 'amounts',
    words: 'reserves CPUs by amount, such as `{ cpu: 500m }`',
  }),
  kubeReserved: machine<unknown>({
    check: managerOption,
    default: undefined,
    defaultWords: 'none',
    type: 'amounts',
    words: 'the same, added to it',
  }),
  strictCPUReservation: machine({
    check: flag,
    default: false,
    type: 'true, false',
    words: 'keeps reserved CPUs out of the shared pool too',
  }),
  isolatedCPUs: machine({
    check: cpuListOr('kernel'),
    default: null,
    defaultWords: 'kernel',
    type: 'CPUs, or kernel',
    words: 'CPUs that are never shared; `kernel`: those that the kernel isolates',
  }),
  reservedMemory: machine<unknown>({
    check: managerOption,
    default: [],
    defaultWords: 'none',
    type: 'a list',
    words: 'memory that is never granted, as in a KubeletConfiguration',
  }),
  kubeletVersion: machine<unknown>({
    check: managerOption,
    default: DEFAULT_VERSION,
    type: 'a version',
    words: 'the kubelet whose decisions are followed',
  }),
  featureGates: machine<unknown>({
    check: managerOption,
    default: DEFAULT_GATES[DEFAULT_VERSION],
    defaultWords: 'as that version',
    type: 'gates',
    words: 'its feature gates',
  }),
  rules: field({
    check: (value, name) => {
      parseRules(value, name);
      return value as readonly object[];
    },
    default: [],
    defaultWords: 'none',
    type: 'a list',
    words: 'what containers get by namespace, label and more: see [rules](rules.md)',
    flag: null,
    part: 'placement',
  }),
  kubeletConfiguration: field({
    check: text,
    default: undefined,
    type: 'a file',
    words: 'a KubeletConfiguration with policies and options; fields beside it take precedence',
    flag: { usage: '--kubelet-configuration <file>' },
    part: 'live',
    isPath: true,
  }),
  nri: field({
    check: flag,
    default: true,
    type: 'true, false',
    words: 'places containers; false: leaves them to the runtime and the kubelet',
    flag: { usage: '--no-nri', words: 'leaves containers to the runtime and the kubelet' },
    part: 'start',
  }),
  nriSocket: field({
    check: text,
    default: NRI_SOCKET,
    type: 'a socket',
    words: "the container runtime's socket for plugins",
    flag: { usage: '--nri-socket <socket>' },
    part: 'start',
    isPath: true,
  }),
  name: field({
    check: text,
    default: 'numalign',
    type: 'a name',
    words: 'the name of the plugin; another for each runtime of a machine',
    flag: { usage: '--name <name>' },
    part: 'start',
  }),
  index: field({
    check: index,
    default: '90',
    type: 'two digits',
    words: 'the order in which runtimes call plugins',
    flag: { usage: '--index <digits>' },
    part: 'start',
  }),
  runtimeEndpoint: field({
    check: text,
    default: undefined,
    defaultWords: 'the one that exists',
    type: 'a socket',
    words: "the runtime's CRI socket, over which it is told where containers run",
    flag: { usage: '--runtime-endpoint <socket>' },
    part: 'start',
  }),
  cgroupRoot: field({
    check: text,
    default: undefined,
    defaultWords: 'where it is mounted',
    type: 'a folder',
    words: 'the hierarchy with cpusets',
    flag: { usage: '--cgroup-root <dir>' },
    part: 'start',
    isPath: true,
  }),
  slices: field({
    check: oneOf(SLICE_MODES),
    default: undefined,
    defaultWords: 'as they are',
    type: SLICE_MODES.join(', '),
    words: "what the kubelet's slices have: the pool, also while the agent is away, or all CPUs again",
    flag: { usage: '--slices <cpus>' },
    part: 'start',
  }),
  devicePlugin: field({
    check: flagOr(text),
    default: false,
    type: 'true, false, or a resource',
    words: 'offers CPUs to the kubelet as devices; `true`: as numalign.io/cpu',
    flag: { usage: '--device-plugin [resource]' },
    part: 'start',
  }),
  deviceUnit: field({
    check: oneOf(DEVICE_UNITS),
    default: 'cpu',
    type: DEVICE_UNITS.join(', '),
    words: 'what a device is',
    flag: { usage: '--device-unit <unit>' },
    part: 'start',
  }),
  dra: field({
    check: flag,
    default: false,
    type: 'true, false',
    words: `grants what a scheduler allocates to ResourceClaims, as the driver ${DRIVER}`,
    flag: { usage: '--dra' },
    part: 'start',
  }),
  draDevices: field({
    check: oneOf(CLAIM_UNITS),
    default: 'node',
    type: CLAIM_UNITS.join(', '),
    words: 'what a device of its ResourceSlices is: a NUMA node, an L3 group, a core or a CPU',
    flag: { usage: '--dra-devices <unit>' },
    part: 'start',
  }),
  draListAttributes: field({
    check: flag,
    default: false,
    type: 'true, false',
    words: 'attributes may be lists, for clusters with the gate DRAListTypeAttributes',
    flag: null,
    part: 'start',
  }),
  draRemoveSlices: field({
    check: flag,
    default: false,
    type: 'true, false',
    words: 'removes the ResourceSlices when it ends, so that no claim is allocated here until it is back',
    flag: null,
    part: 'start',
  }),
  cdiFolder: field({
    check: text,
    default: CDI_FOLDER,
    type: 'a folder',
    words: 'where the runtime looks for CDI devices',
    flag: { usage: '--cdi-folder <dir>' },
    part: 'start',
    isPath: true,
  }),
  kubelet: field({
    check: flag,
    default: true,
    type: 'true, false',
    words: 'records what the kubelet assigns',
    flag: { usage: '--no-kubelet', words: 'does not record what the kubelet assigns' },
    part: 'start',
  }),
  kubeletFolder: field({
    check: text,
    default: KUBELET_FOLDER,
    type: 'a folder',
    words: "the kubelet's folder",
    flag: { usage: '--kubelet-folder <dir>' },
    part: 'start',
    isPath: true,
  }),
  wholePods: field({
    check: flag,
    default: false,
    type: 'true, false',
    words: 'places a pod with all its containers, by its manifest at the API server',
    flag: { usage: '--whole-pods' },
    part: 'start',
  }),
  publish: field({
    check: flag,
    default: false,
    type: 'true, false',
    words: "keeps the node's NodeResourceTopology up to date at the API server",
    flag: { usage: '--publish' },
    part: 'start',
  }),
  onRefusal: field({
    check: oneOf(REFUSAL_MODES),
    default: 'keep',
    type: REFUSAL_MODES.join(', '),
    words: 'what becomes of pods without a place here, at the API server',
    flag: { usage: '--on-refusal <what>' },
    part: 'start',
  }),
  nodeName: field({
    check: text,
    default: process.env.NODE_NAME || hostname(),
    defaultWords: '$NODE_NAME, else the host name',
    type: 'a name',
    words: 'the name of the Node',
    flag: { usage: '--node-name <name>' },
    part: 'start',
  }),
  kubeconfig: field({
    check: text,
    default: undefined,
    defaultWords: 'the service account of the pod',
    type: 'a file',
    words: 'a kubeconfig that says where the API server is, and who asks',
    flag: { usage: '--kubeconfig <file>' },
    part: 'start',
    isPath: true,
  }),
  stateDir: field({
    check: text,
    default: MACHINE_STATE_DIR,
    type: 'a folder',
    words: 'the folder of the state',
    flag: { usage: '--state-dir <dir>' },
    part: 'start',
    isPath: true,
  }),
  events: field({
    check: flag,
    default: true,
    type: 'true, false',
    words: 'writes Events, if an API server is known',
    flag: {
      usage: '--no-events',
      words: 'writes no Events; else they are written if an API server is known',
    },
    part: 'start',
  }),
  listen: field({
    check: flagOr(address),
    default: false,
    type: 'true, false, or address:port',
    words: `serves /metrics, /healthz and /readyz, without authentication; \`true\`: at ${LISTEN}`,
    flag: { usage: '--listen [address:port]' },
    part: 'start',
  }),
  maxGrants: field({
    check: grantCount,
    default: 100,
    type: 'a number',
    words: 'how many grants have metrics of their own; 0: none',
    flag: { usage: '--max-grants <count>' },
    part: 'start',
  }),
  page: field({
    check: flagOr(address),
    default: false,
    type: 'true, false, or address:port',
    words: `serves a live page of the machine; \`true\`: at ${PAGE}`,
    flag: { usage: '--page [address:port]' },
    part: 'start',
  }),
  pageTokenFile: field({
    check: text,
    default: undefined,
    type: 'a file',
    words: 'the page asks for the token in this file; needed beyond loopback',
    flag: { usage: '--page-token-file <file>' },
    part: 'start',
    isPath: true,
  }),
  logFormat: field({
    check: oneOf(LOG_FORMATS),
    default: 'text',
    type: LOG_FORMATS.join(', '),
    words: 'the format of the log on stderr',
    flag: { usage: '--log-format <format>' },
    part: 'live',
  }),
  logLevel: field({
    check: oneOf(LOG_LEVELS),
    default: 'info',
    type: LOG_LEVELS.join(', '),
    words: 'messages below it are left out',
    flag: { usage: '--log-level <level>' },
    part: 'live',
  }),
} satisfies Readonly<Record<string, Field<never> | Field<unknown>>>;

type Table = typeof FIELDS;
export type FieldName = keyof Table;

type ValueOf<Row> = Row extends { readonly check: (...args: never[]) => infer Value; default: infer Default }
  ? undefined extends Default
    ? Value | undefined
    : Value
  : never;

/** A value for each field: what is set, or its default. */
export type Values = { readonly [Name in FieldName]: ValueOf<Table[Name]> };

export const FIELD_NAMES = Object.keys(FIELDS) as readonly FieldName[];

/** The row of a field, whichever its values are. */
export const rowOf = (name: FieldName): Field<unknown> => FIELDS[name] as Field<unknown>;
