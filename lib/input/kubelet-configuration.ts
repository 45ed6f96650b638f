// Reads options of openManager from a KubeletConfiguration document. It checks the types of fields;
// config.ts checks their values.
import { invalidOption } from '../base/check-options.js';
import { FEATURE_GATES, type FeatureGates } from '../base/kubelet-features.js';
import type { Shape } from '../base/shapes.js';
import { PLACEMENT_OPTIONS } from './placement-options.js';
import { option } from './values/option-values.js';
import type { Quantity } from './values/quantity.js';

/**
 * `openManager({ kubeletConfiguration })` and `--config` take these fields of a document of kind
 * `KubeletConfiguration`, `kubelet.config.k8s.io/v1beta1`, and ignore all others. A field that the
 * document leaves out has Kubernetes' default, which is not always numalign's. Options beside the
 * document take precedence: reserved amounts resource by resource, other options as a whole.
 * `cpuManagerPolicyOptions` beside the document replaces all of its options; `--cpu-option` adds to
 * them.
 */
export interface KubeletOptions {
  /**
   * Like {@link MachineOptions.reservedSystemCPUs}. `static` does not require a reserved CPU, since
   * numalign never empties the shared pool.
   * @default none
   */
  readonly reservedSystemCPUs?: string;
  /**
   * Like {@link MachineOptions.systemReserved}.
   * @default none
   */
  readonly systemReserved?: Readonly<Record<string, Quantity>>;
  /**
   * Like {@link MachineOptions.kubeReserved}.
   * @default none
   */
  readonly kubeReserved?: Readonly<Record<string, Quantity>>;
  /**
   * Like {@link ManagerOptions.cpuManagerReconcilePeriod}; 0 stands for the default. Commands
   * ignore it: `numalign agent` reconciles every 10 seconds.
   * @default 30 s (the kubelet: 10 s)
   */
  readonly cpuManagerReconcilePeriod?: string;
  /**
   * Like {@link MachineOptions.reservedMemory}.
   * @default none
   */
  readonly reservedMemory?: readonly unknown[];
  /**
   * Like {@link MachineOptions.featureGates}; other gates are ignored.
   * @default those of the kubelet version
   */
  readonly featureGates?: Partial<FeatureGates>;
}

const DOCUMENT = 'kubeletConfiguration';
const API_VERSION = 'kubelet.config.k8s.io/v1beta1';
const KIND = 'KubeletConfiguration';

const parseMap = <T>(value: unknown, field: string, shape: Shape<T>) =>
  Object.freeze(option.record(value, field, shape));

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

// A kubelet has many other gates, which do not matter here.
function parseGates(value: unknown, field: string): Partial<FeatureGates> | undefined {
  const fields = option.object(value, field);
  const gates = FEATURE_GATES.filter((gate) => fields[gate] !== undefined);
  if (gates.length === 0) return undefined;
  return Object.freeze(
    Object.fromEntries(gates.map((gate) => [gate, option.flag(fields[gate], `${field}.${gate}`)])),
  );
}

const parseList = (value: unknown, field: string) => Object.freeze([...option.list(value, field)]);

/** What an error calls an option that a document sets. */
export function nameInDocument(name: keyof typeof PLACEMENT_OPTIONS): string {
  const entry = PLACEMENT_OPTIONS[name];
  return ('kubelet' in entry && entry.kubelet?.name) || name;
}

/**
 * The options of openManager that a document sets: the fields that matter here, without all others.
 * It does not check the names of policies and their options.
 * @throws ERR_INVALID_OPTION, which names the field
 */
export function fromKubeletConfiguration(document: unknown): KubeletOptions & Record<string, unknown> {
  const fields = option.object(document, DOCUMENT);
  if (fields.kind !== KIND) invalidOption(`${DOCUMENT}.kind`, fields.kind, `"${KIND}"`);
  if ((fields.apiVersion ?? API_VERSION) !== API_VERSION) {
    invalidOption(`${DOCUMENT}.apiVersion`, fields.apiVersion, `"${API_VERSION}"`);
  }
  // Kubernetes reads null, and below an empty text, as a missing field.
  const read = <T>(name: string, parse: Shape<T>): T | undefined => {
    const value = fields[name];
    return value === undefined || value === null ? undefined : parse(value, `${DOCUMENT}.${name}`);
  };
  const options: Record<string, unknown> = {
    reservedSystemCPUs: read('reservedSystemCPUs', option.text) || undefined,
    systemReserved: read('systemReserved', parseQuantities),
    kubeReserved: read('kubeReserved', parseQuantities),
    cpuManagerReconcilePeriod: read('cpuManagerReconcilePeriod', option.text) || undefined,
    reservedMemory: read('reservedMemory', parseList),
    featureGates: read('featureGates', parseGates),
  } satisfies Record<keyof KubeletOptions, unknown>;
  for (const [name, entry] of Object.entries(PLACEMENT_OPTIONS)) {
    if ('rows' in entry) options[name] = read(name, parsePolicyOptions) ?? Object.freeze({});
    else if (entry.kubelet) options[name] = read(entry.kubelet.name, option.text) || entry.kubelet.default;
  }
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.freeze(Object.fromEntries(entries));
}
