// The start check of a kubelet: why it would not start with a KubeletConfiguration on a machine. Pure.
import type { KubeletVersion } from 'numalign/kubelet';
import { excludedBy } from 'numalign/tools';
import type { Topology } from 'numalign/topology';
import { gatesOf } from './feature-gates.js';
import { because, type Fields, type Finding, fieldsOf, guess, isGiven, listOf, wrong } from './findings.js';
import {
  CHOICES,
  COMING,
  ENFORCEMENTS,
  FIELD_TYPES,
  MAP_VALUE,
  OPTION_STAGES,
  RANGES,
  TEXT_MAPS,
} from './kubelet-fields.js';
import { memoryFindings, reservesCpus } from './reservations.js';

/** The kubelet and its node. */
export interface StartContext {
  readonly version: KubeletVersion;
  readonly topology: Topology;
  /** What the command line sets in place of fields. */
  readonly instead: Fields;
}

/** Why a kubelet would not start with the document; empty if it would. */
export function startFindings(document: Fields, context: StartContext): Finding[] {
  const types = [...Object.entries(document)].flatMap(([name, value]) => typeFindings(name, value));
  // A value of the wrong type would only be found again.
  if (types.length > 0) return [...types, ...gateFindings(document, context)];
  const fields = { ...document, ...context.instead };
  return [
    ...gateFindings(document, context),
    ...valueFindings(document),
    ...allocatableFindings(document),
    ...optionFindings(fields, context),
    ...cpuFindings(fields),
    ...nodeFindings(fields, context),
    ...memoryFindings(fields, context.topology),
  ];
}

function typeFindings(name: string, value: unknown): Finding[] {
  const type = FIELD_TYPES.get(name);
  if (Object.hasOwn(COMING, name)) return [because(name, COMING[name]!)];
  // The kubelet itself only logs this. But what is misspelt has no effect.
  if (!type)
    return [because(name, `a KubeletConfiguration has no such field${guess(name, [...FIELD_TYPES.keys()])}`)];
  if (value === null) return [];
  if (!type.is(value)) return [wrong(name, value, type.valid)];
  if (!TEXT_MAPS.includes(name)) return [];
  return Object.entries(value as Fields).flatMap(([key, item]) =>
    MAP_VALUE.is(item) ? [] : [wrong(`${name}.${key}`, item, MAP_VALUE.valid)],
  );
}

function gateFindings({ featureGates }: Fields, { version }: StartContext): Finding[] {
  const known = gatesOf(version);
  return Object.entries(fieldsOf(featureGates)).flatMap(([gate, value]) => {
    const field = `featureGates.${gate}`;
    if (typeof value !== 'boolean') return [wrong(field, value, 'true or false')];
    const isLocked = known?.get(gate);
    if (Object.hasOwn(COMING, gate)) return [because(field, COMING[gate]!)];
    if (known && isLocked === undefined)
      return [because(field, `the kubelet ${version} has no such gate${guess(gate, [...known.keys()])}`)];
    return isLocked && !value ? [wrong(field, value, `true: it is locked in ${version}`)] : [];
  });
}

function valueFindings(document: Fields): Finding[] {
  const ranges = Object.entries(RANGES).flatMap(([name, [least, most]]) => {
    const value = document[name];
    if (typeof value !== 'number' || (value >= least && value <= most)) return [];
    if (name === 'memoryThrottlingFactor') return [wrong(name, value, 'greater than 0 and at most 1')];
    return [
      wrong(name, value, most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`),
    ];
  });
  const choices = Object.entries(CHOICES).flatMap(([name, valid]) => {
    const value = document[name];
    return !isGiven(value) || valid.includes(String(value))
      ? []
      : [wrong(name, value, `one of ${valid.join(', ')}`)];
  });
  const { imageGCHighThresholdPercent: high = 85, imageGCLowThresholdPercent: low = 80 } = document;
  const isWrongOrder = Number(low) >= Number(high);
  const parallel = Number(document.maxParallelImagePulls ?? 1);
  const { swapBehavior } = fieldsOf(document.memorySwap);
  return [
    ...ranges,
    ...choices,
    ...(isWrongOrder
      ? [wrong('imageGCLowThresholdPercent', low, `less than imageGCHighThresholdPercent, which is ${high}`)]
      : []),
    ...(document.serializeImagePulls === true && parallel > 1
      ? [wrong('maxParallelImagePulls', parallel, '1 with serializeImagePulls')]
      : []),
    ...(isGiven(document.systemCgroups) && !isGiven(document.cgroupRoot)
      ? [because('systemCgroups', 'it needs cgroupRoot')]
      : []),
    ...(!isGiven(swapBehavior) || ['NoSwap', 'LimitedSwap'].includes(String(swapBehavior))
      ? []
      : [wrong('memorySwap.swapBehavior', swapBehavior, 'NoSwap or LimitedSwap')]),
  ];
}

function allocatableFindings(document: Fields): Finding[] {
  const name = 'enforceNodeAllocatable';
  const all = listOf(document[name]);
  const entries = all.flatMap((value, i) => {
    const field = `${name}[${i}]`;
    const cgroup = ENFORCEMENTS.get(String(value));
    if (!ENFORCEMENTS.has(String(value)))
      return [wrong(field, value, `one of ${[...ENFORCEMENTS.keys()].join(', ')}`)];
    if (all.indexOf(value) < i) return [wrong(field, value, 'given once')];
    if (value === 'none') return all.length > 1 ? [because(field, 'none excludes all others')] : [];
    const partner = `${value}-compressible`;
    return [
      ...(cgroup && !isGiven(document[cgroup]) ? [because(field, `${value} needs ${cgroup}`)] : []),
      ...(all.includes(partner) ? [because(field, `${value} and ${partner} exclude each other`)] : []),
      ...(document.cgroupsPerQOS === false ? [because(field, `${value} needs cgroupsPerQOS`)] : []),
    ];
  });
  const cgroups = (['systemReservedCgroup', 'kubeReservedCgroup'] as const).filter((each) =>
    isGiven(document[each]),
  );
  const isBoth = isGiven(document.reservedSystemCPUs) && cgroups.length > 0;
  return isBoth
    ? [...entries, because('reservedSystemCPUs', `it excludes ${cgroups.join(' and ')}`)]
    : entries;
}

const POLICIES = {
  cpuManagerPolicyOptions: { policy: 'cpuManagerPolicy', gate: 'CPUManagerPolicy' },
  topologyManagerPolicyOptions: { policy: 'topologyManagerPolicy', gate: 'TopologyManagerPolicy' },
} as const;

function optionFindings(fields: Fields, { version }: StartContext): Finding[] {
  const gates = fieldsOf(fields.featureGates);
  const isOn = (gate: string, stage: 'Alpha' | 'Beta') =>
    gates[gate] ?? gates[`All${stage}`] ?? stage === 'Beta';
  return (Object.keys(POLICIES) as (keyof typeof POLICIES)[]).flatMap((name) => {
    const options = fieldsOf(fields[name]);
    const { policy, gate } = POLICIES[name];
    const isNone = (fields[policy] ?? 'none') === 'none';
    // Without a policy the Topology Manager looks at no options.
    if (isNone && name === 'topologyManagerPolicyOptions') return [];
    if (isNone && Object.keys(options).length > 0) return [because(name, `${policy} none has no options`)];
    const stages = OPTION_STAGES[name];
    return Object.entries(options).flatMap(([option, value]) => {
      const field = `${name}.${option}`;
      if (Object.hasOwn(COMING, option)) return [because(field, COMING[option]!)];
      const stage = stages[option]?.[version === 'v1.32' ? 0 : 1];
      if (!stage)
        return [
          because(field, `the kubelet ${version} has no such option${guess(option, Object.keys(stages))}`),
        ];
      const needed = `${gate}${stage}Options`;
      if (stage !== 'stable' && !isOn(needed, stage))
        return [because(field, `the kubelet ${version} needs the feature gate ${needed} for it`)];
      return optionValueFindings(fields, field, option, value);
    });
  });
}

const isTrue = (value: unknown) => /^(1|t|T|true|TRUE|True)$/.test(String(value));

function optionValueFindings(fields: Fields, field: string, option: string, value: unknown): Finding[] {
  if (option === 'max-allowable-numa-nodes')
    return /^\d{1,9}$/.test(String(value)) && Number(value) >= LEAST_LIMIT
      ? []
      : [wrong(field, value, `a whole number of NUMA nodes, at least ${LEAST_LIMIT}`)];
  if (!/^(1|0|t|f|T|F|true|false|TRUE|FALSE|True|False)$/.test(String(value)))
    return [wrong(field, value, 'true or false')];
  if (!isTrue(value)) return [];
  const all = fieldsOf(fields.cpuManagerPolicyOptions);
  const excluded = excludedBy(option).filter((other) => isTrue(all[other]) && option < other);
  if (excluded.length > 0) return [because(field, `it excludes ${excluded.join(' and ')}`)];
  return option === 'align-by-socket' && fields.topologyManagerPolicy === 'single-numa-node'
    ? [because(field, 'it excludes topologyManagerPolicy single-numa-node')]
    : [];
}

function cpuFindings(fields: Fields): Finding[] {
  const isReserved = isGiven(fields.reservedSystemCPUs) || reservesCpus(fields);
  if (fields.cpuManagerPolicy !== 'static' || isReserved) return [];
  const why = 'static needs reserved CPUs: reservedSystemCPUs, or cpu in kubeReserved or systemReserved';
  return [because('cpuManagerPolicy', why)];
}

// The kubelet's own limit, and the least that the option may set.
const LEAST_LIMIT = 8;

function nodeFindings(fields: Fields, { topology }: StartContext): Finding[] {
  const { topologyManagerPolicy: policy = 'none' } = fields;
  const option = 'max-allowable-numa-nodes';
  const limit = Number(fieldsOf(fields.topologyManagerPolicyOptions)[option] ?? LEAST_LIMIT);
  const count = topology.nodes.length;
  const sockets = topology.packages.length;
  return [
    ...(policy !== 'none' && count > limit
      ? [
          because(
            'topologyManagerPolicy',
            `${policy} allows at most ${limit} NUMA nodes, and this machine has ${count}: set ${option}`,
          ),
        ]
      : []),
    ...(isTrue(fieldsOf(fields.cpuManagerPolicyOptions)['align-by-socket']) && sockets > count
      ? [
          because(
            'cpuManagerPolicyOptions.align-by-socket',
            `this machine has more sockets (${sockets}) than NUMA nodes (${count})`,
          ),
        ]
      : []),
  ];
}
