// Reads options of openManager from a KubeletConfiguration document. It checks the types of fields;
// config.ts checks their values.

import { checkOptions, invalidOption } from '../base/check-options.js';
import { unlessThrown } from '../base/errors.js';
import { FEATURE_GATES, type FeatureGates } from '../base/kubelet-features.js';
import type { Shape } from '../base/shapes.js';
import { MACHINE_OPTIONS } from './machine-options.js';
import type { KubeletField } from './option-table.js';
import { PLACEMENT_OPTIONS } from './placement-options.js';
import { option } from './values/option-values.js';
import { parseQuantity, type Quantity } from './values/quantity.js';

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
   * Like {@link ManagerOptions.cpuManagerReconcilePeriod}; 0 stands for the default. Commands
   * ignore it: `numalign agent` reconciles every 10 seconds.
   * @default 30 s (the kubelet: 10 s)
   */
  readonly cpuManagerReconcilePeriod?: string;
  /**
   * **Provisional.** `memory-drift-tolerance` (KEP-6232): `auto`, `off` or an amount. It is checked, and changes nothing: numalign keeps its grants however much memory a node
   * has now, and flags those that no longer fit.
   * @default none
   */
  readonly memoryManagerPolicyOptions?: Readonly<Record<string, string>>;
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

// A kubelet has many other gates, which do not matter here.
function parseGates(value: unknown, field: string): Partial<FeatureGates> | undefined {
  const fields = option.object(value, field);
  const gates = FEATURE_GATES.filter((gate) => fields[gate] !== undefined);
  if (gates.length === 0) return undefined;
  return Object.freeze(
    Object.fromEntries(gates.map((gate) => [gate, option.flag(fields[gate], `${field}.${gate}`)])),
  );
}

const DRIFT_TOLERANCE = 'memory-drift-tolerance';

function isAmount(value: Quantity): boolean {
  return unlessThrown(() => parseQuantity(value, DRIFT_TOLERANCE) >= 0n, false);
}

function checkMemoryOptions(value: unknown, field: string): void {
  const options = parseMap(value, field, parseScalar);
  const { [DRIFT_TOLERANCE]: tolerance = 'auto' } = checkOptions(options, [DRIFT_TOLERANCE], field);
  if (tolerance !== 'auto' && tolerance !== 'off' && !isAmount(tolerance as Quantity))
    invalidOption(`${field}.${DRIFT_TOLERANCE}`, tolerance, "'auto', 'off', or an amount such as '128Mi'");
}

// Kubernetes reads an empty text as a missing field.
const parseText = (value: unknown, field: string) => option.text(value, field) || undefined;

const SHAPES: Readonly<Record<KubeletField['shape'], Shape<unknown>>> = {
  text: parseText,
  amounts: (value, field) => parseMap(value, field, parseScalar),
  list: (value, field) => Object.freeze([...option.list(value, field)]),
  gates: parseGates,
  'policy options': (value, field) => parseMap(value, field, parsePolicyOption),
};

const TABLE = { ...PLACEMENT_OPTIONS, ...MACHINE_OPTIONS };

/** The field of a document that sets an option. */
export const fieldName = (name: keyof typeof TABLE): string => TABLE[name].kubelet?.name ?? name;

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
  // Kubernetes reads null as a missing field.
  const read = <T>(name: string, parse: Shape<T>): T | undefined => {
    const value = fields[name];
    return value === undefined || value === null ? undefined : parse(value, `${DOCUMENT}.${name}`);
  };
  const options: Record<string, unknown> = {};
  const put = (name: string, value: unknown) => {
    if (value !== undefined) options[name] = value;
  };
  for (const name of Object.keys(TABLE) as (keyof typeof TABLE)[]) {
    const { kubelet } = TABLE[name];
    if (kubelet) put(name, read(fieldName(name), SHAPES[kubelet.shape]) ?? kubelet.default);
  }
  put('cpuManagerReconcilePeriod', read('cpuManagerReconcilePeriod', parseText));
  read('memoryManagerPolicyOptions', checkMemoryOptions);
  return Object.freeze(options);
}
