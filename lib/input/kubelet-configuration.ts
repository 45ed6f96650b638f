// A KubeletConfiguration document -> the options of openManager that it stands for. Checks shapes;
// config.ts checks the sense.
import { invalidOption } from '../base/check-options.js';
import type {
  CpuManagerPolicy,
  MemoryManagerPolicy,
  TopologyManagerPolicy,
  TopologyManagerScope,
} from './policies.js';
import type { Quantity } from './quantity.js';

/**
 * What numalign takes from a KubeletConfiguration; Kubernetes' defaults stand where the document
 * leaves a field out.
 */
export interface KubeletOptions {
  readonly cpuManagerPolicy: CpuManagerPolicy;
  readonly cpuManagerPolicyOptions: Readonly<Record<string, string>>;
  readonly topologyManagerPolicy: TopologyManagerPolicy;
  readonly topologyManagerPolicyOptions: Readonly<Record<string, string>>;
  readonly topologyManagerScope: TopologyManagerScope;
  readonly reservedSystemCPUs?: string;
  readonly systemReserved?: Readonly<Record<string, Quantity>>;
  readonly kubeReserved?: Readonly<Record<string, Quantity>>;
  readonly cpuManagerReconcilePeriod?: string;
  readonly memoryManagerPolicy: MemoryManagerPolicy;
  readonly reservedMemory?: readonly unknown[];
}

const DOCUMENT = 'kubeletConfiguration';
const API_VERSION = 'kubelet.config.k8s.io/v1beta1';
const KIND = 'KubeletConfiguration';

function parseObject(value: unknown, field: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  return invalidOption(field, value, 'an object');
}

function parseMap<T>(value: unknown, field: string, parse: (value: unknown, field: string) => T) {
  const entries = Object.entries(parseObject(value, field));
  return Object.freeze(
    Object.fromEntries(entries.map(([key, item]) => [key, parse(item, `${field}.${key}`)])),
  );
}

function parseText(value: unknown, field: string): string {
  return typeof value === 'string' ? value : invalidOption(field, value, 'a text');
}

function parseScalar(value: unknown, field: string): Quantity {
  if (typeof value === 'string' || Number.isFinite(value)) return value as Quantity;
  return invalidOption(field, value, 'a text or a number');
}

/** Kubernetes compares texts; authors of YAML write true as well as "true". */
function parsePolicyOption(value: unknown, field: string): string {
  if (typeof value === 'boolean') return String(value);
  return String(parseScalar(value, field));
}

const parsePolicyOptions = (value: unknown, field: string) => parseMap(value, field, parsePolicyOption);
const parseQuantities = (value: unknown, field: string) => parseMap(value, field, parseScalar);

function parseList(value: unknown, field: string): readonly unknown[] {
  return Array.isArray(value) ? Object.freeze([...value]) : invalidOption(field, value, 'a list');
}

/**
 * The fields that matter here; all others are ignored. What a policy's name or option means is not
 * checked.
 * @throws ERR_INVALID_OPTION, which names the field
 */
export function fromKubeletConfiguration(document: unknown): KubeletOptions {
  const given = parseObject(document, DOCUMENT);
  if (given.kind !== KIND) invalidOption(`${DOCUMENT}.kind`, given.kind, `"${KIND}"`);
  if ((given.apiVersion ?? API_VERSION) !== API_VERSION) {
    invalidOption(`${DOCUMENT}.apiVersion`, given.apiVersion, `"${API_VERSION}"`);
  }
  // null stands for a field left out, as Kubernetes reads it; and so does an empty text, below.
  const read = <T>(
    name: keyof KubeletOptions,
    parse: (value: unknown, field: string) => T,
  ): T | undefined => {
    const value = given[name];
    return value === undefined || value === null ? undefined : parse(value, `${DOCUMENT}.${name}`);
  };
  const options = {
    cpuManagerPolicy: read('cpuManagerPolicy', parseText) || 'none',
    cpuManagerPolicyOptions: read('cpuManagerPolicyOptions', parsePolicyOptions) ?? Object.freeze({}),
    topologyManagerPolicy: read('topologyManagerPolicy', parseText) || 'none',
    topologyManagerPolicyOptions:
      read('topologyManagerPolicyOptions', parsePolicyOptions) ?? Object.freeze({}),
    topologyManagerScope: read('topologyManagerScope', parseText) || 'container',
    reservedSystemCPUs: read('reservedSystemCPUs', parseText) || undefined,
    systemReserved: read('systemReserved', parseQuantities),
    kubeReserved: read('kubeReserved', parseQuantities),
    cpuManagerReconcilePeriod: read('cpuManagerReconcilePeriod', parseText) || undefined,
    memoryManagerPolicy: read('memoryManagerPolicy', parseText) || 'None',
    reservedMemory: read('reservedMemory', parseList),
  };
  const present = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.freeze(Object.fromEntries(present)) as unknown as KubeletOptions;
}
