// The options of commands for placement and machine settings, and a kubelet's configuration below
// them.
import { Option } from 'commander';
import {
  type CpuSet,
  type IsolationChoice,
  type ManagerOptions,
  NumalignError,
  type PlacementChoice,
} from 'numalign';
import type {
  CpuManagerPolicy,
  CpuManagerPolicyOptions,
  FeatureGates,
  KubeletVersion,
  TopologyManagerPolicy,
  TopologyManagerScope,
} from 'numalign/kubelet';
import {
  CPU_MANAGER_POLICIES,
  checkManagerOptions,
  ISOLATION_CHOICES,
  PLACEMENT_CHOICES,
  TOPOLOGY_MANAGER_POLICIES,
} from 'numalign/tools';
import { cpuList, cpuOption, featureGatesOption, kubeletVersionOption } from './arguments.js';
import { fileName, inPlace, readDocuments } from './documents.js';
import { cgroupRootOf, cgroupRootOption } from './enforcement.js';

/** The flags of every command that opens a manager. */
export interface OpeningFlags {
  config?: string;
  cpuOption?: CpuManagerPolicyOptions;
  reserved?: CpuSet;
  isolated?: CpuSet;
  cgroupRoot?: string;
  kubeletVersion?: KubeletVersion;
  featureGates?: Partial<FeatureGates>;
}

export interface PlacementFlags extends OpeningFlags {
  cpuPolicy?: CpuManagerPolicy;
  policy?: TopologyManagerPolicy;
  scope?: TopologyManagerScope;
  isolation?: IsolationChoice;
  initContainerLookahead?: boolean;
  strictHugepages?: boolean;
  placement?: PlacementChoice;
}

export function policyOption(): Option {
  return new Option('--policy <policy>', 'Topology Manager policy (default: best-effort)').choices(
    TOPOLOGY_MANAGER_POLICIES,
  );
}

/** An option of a manager. */
export function cpuPolicyOption(): Option {
  return new Option(
    '--cpu-policy <policy>',
    'CPU Manager policy; dynamic: grants that consent move to make room (default: static)',
  ).choices(CPU_MANAGER_POLICIES);
}

/** An option of one request. */
export function isolationOption(): Option {
  return new Option(
    '--isolation <mode>',
    'take isolated CPUs if there are enough, or only those (default: never)',
  ).choices(ISOLATION_CHOICES);
}

/** An option of one request. */
export function strictHugepagesOption(): Option {
  return new Option('--strict-hugepages', 'count only hugepages that the kernel has free (default: off)');
}

/** An option of one request. */
export function placementOption(): Option {
  return new Option(
    '--placement <choice>',
    'choose NUMA nodes as the kubelet does, or for all resources together (default: kubelet)',
  ).choices(PLACEMENT_CHOICES);
}

/** An option of the machine. */
export function isolatedOption(): Option {
  return new Option(
    '--isolated <list>',
    'CPUs that are never shared, and granted only on request; must match the recorded settings',
  ).argParser(cpuList);
}

/** An option of the machine. */
export function agreedCgroupRootOption(): Option {
  return cgroupRootOption('; must match the recorded settings');
}

/** An option of the machine. */
export function reservedOption(): Option {
  return new Option(
    '--reserved <list>',
    'CPUs that are never exclusive; must match the recorded settings',
  ).argParser(cpuList);
}

export function openingOptions(): Option[] {
  return [
    new Option('--config <file>', "a KubeletConfiguration; what it leaves out has Kubernetes' defaults"),
    new Option('--cpu-option <name[=bool]>', 'an option of the static CPU policy; may be repeated').argParser(
      cpuOption,
    ),
    reservedOption(),
    isolatedOption(),
    agreedCgroupRootOption(),
    kubeletVersionOption(),
    featureGatesOption(),
  ];
}

export function placementOptions(): Option[] {
  return [
    ...openingOptions(),
    cpuPolicyOption(),
    policyOption(),
    new Option('--scope <scope>', 'align containers or whole pods (default: container)').choices([
      'container',
      'pod',
    ]),
    new Option(
      '--init-container-lookahead',
      'place init containers on NUMA nodes where the whole pod fits (default: off)',
    ),
    strictHugepagesOption(),
    placementOption(),
    isolationOption(),
  ];
}

async function readConfiguration(
  file: string,
): Promise<{ cpuManagerPolicyOptions?: CpuManagerPolicyOptions | null }> {
  const [document, second] = await readDocuments(file);
  if (!document || second) {
    throw new NumalignError(
      'ERR_INVALID_ARGUMENT',
      `${fileName(file)}: it must be one document, a KubeletConfiguration`,
      {
        value: file,
      },
    );
  }
  const { value, place } = document;
  inPlace(place, () => checkManagerOptions({ kubeletConfiguration: value as object }));
  return value as object;
}

/** The options of a manager with these flags. */
export async function managerOptions(flags: PlacementFlags): Promise<ManagerOptions> {
  const { config, policy, scope, cpuPolicy, cpuOption, reserved, isolated, cgroupRoot } = flags;
  const { kubeletVersion, featureGates } = flags;
  const { initContainerLookahead, strictHugepages, placement } = flags;
  const document = config === undefined ? undefined : await readConfiguration(config);
  return {
    ...(document && { kubeletConfiguration: document }),
    ...(cpuPolicy && { cpuManagerPolicy: cpuPolicy }),
    ...(policy && { topologyManagerPolicy: policy }),
    ...(scope && { topologyManagerScope: scope }),
    ...(initContainerLookahead && { initContainerLookahead }),
    ...(strictHugepages && { strictHugepages }),
    ...(placement && { placement }),
    // Added to the document's one by one: the API's option would replace them all.
    ...(cpuOption && { cpuManagerPolicyOptions: { ...document?.cpuManagerPolicyOptions, ...cpuOption } }),
    ...(reserved && { reservedSystemCPUs: reserved }),
    ...(isolated && { isolatedCPUs: isolated }),
    ...(cgroupRoot !== undefined && { cgroupRoot: cgroupRootOf(cgroupRoot) }),
    ...(kubeletVersion && { kubeletVersion }),
    ...(featureGates && { featureGates }),
  };
}
