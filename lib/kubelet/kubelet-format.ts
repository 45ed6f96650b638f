// KubeletFormat: the kubelet's state files (v1.32 to v1.37), cpu_manager_state and
// memory_manager_state. Text <-> values, byte for byte and with checksums. Pure. Reads like the
// kubelet, except that it neither trusts a file without a checksum nor skips unknown members.
import { NumalignError } from '../base/errors.js';
import { type GoJson, GoObject, parseGoJson } from './go-json.js';
import { type GoType, GoTypeError, map, struct, text, textKey, uint64 } from './go-value.js';

/** The options that the readers of the kubelet's state files share. */
export interface KubeletFormatOptions {
  /**
   * The policy that the file must have.
   * @default any
   */
  policy?: string;
  /**
   * Reads a file with checksum 0 or none, as the kubelet does. Damage goes unnoticed then.
   * @default `false`
   */
  allowUnverified?: boolean;
  /**
   * Reads the files of a kubelet with the feature gate PodLevelResourceManagers, and older ones.
   * @default `false`: only older ones
   */
  podLevelResourceManagers?: boolean;
}

/** A value, and whether its checksum is right. */
export type Verified<T> = T & { readonly verified: boolean };

export interface Header {
  readonly policyName: string;
  readonly checksum: bigint;
}
export const policyName = { go: 'PolicyName', type: text() };
export const checksum = { go: 'Checksum', type: uint64('checksum.Checksum') };

/** The text under a file's checksum. */
export function rendering<T extends Header>(type: GoType<T>, file: T): string {
  return `(*${type.name})${type.render({ ...file, checksum: 0n })}`;
}

/** 32-bit FNV-1a. */
export function fnv1a(bytes: Uint8Array): number {
  let hash = 2_166_136_261;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 16_777_619);
  return hash >>> 0;
}

function checksumOf<T extends Header>(type: GoType<T>, file: T): bigint {
  return BigInt(fnv1a(Buffer.from(rendering(type, file))));
}

export function print<T extends Header>(type: GoType<T>, file: T): string {
  return type.write({ ...file, checksum: checksumOf(type, file) });
}

/** Null is nil, which Go reads as an empty map. */
export function mapValues<K, A, B>(
  from: ReadonlyMap<K, A> | null,
  change: (value: A, key: K) => B,
): Map<K, B> {
  return new Map(Array.from(from ?? [], ([key, value]) => [key, change(value, key)]));
}

/** What is booked for pods as a whole, by pod uid. */
export const podEntriesField = <T>(entry: GoType<T>, name: string) => ({
  go: 'PodEntries',
  type: map(textKey(), entry, name),
  omitEmpty: true,
});

export function unusable(name: string, message: string, details: object = {}): never {
  throw new NumalignError('ERR_KUBELET_STATE', `${name} cannot be used: ${message}`, {
    file: name,
    ...details,
  });
}

function parseJson(name: string, file: string): GoJson {
  try {
    return parseGoJson(file);
  } catch (cause) {
    const message = `it is not JSON (${(cause as Error).message})`;
    return unusable(name, message, { value: file, valid: 'JSON', cause });
  }
}

function readInto<T>(type: GoType<T>, name: string, json: GoJson, empty: T): T {
  try {
    return type.read(json, empty, name);
  } catch (cause) {
    if (!(cause instanceof GoTypeError)) throw cause;
    return unusable(name, cause.message, { ...cause.details, cause });
  }
}

function checkChecksum(name: string, value: bigint, valid: bigint): void {
  if (value === valid) return;
  unusable(name, `it is damaged: its checksum is ${value}, its content has ${valid}`, { value, valid });
}

interface Envelope {
  readonly data: string;
  readonly dataChecksum: bigint;
}

/** The members of all versions but the last two, which `data` and its checksum are. */
const OLD_MEMBERS = ['policyName', 'defaultCpuSet', 'machineState', 'entries', 'podEntries', 'checksum'];

const ENVELOPE = struct<Envelope>(
  'Checkpoint',
  {
    data: { go: 'Data', type: text() },
    dataChecksum: { go: 'DataChecksum', type: uint64('checksum.Checksum') },
  },
  OLD_MEMBERS,
);

/** The members that a version without `podEntries` skips. */
export const NEWER_MEMBERS = ['podEntries', 'data', 'dataChecksum'];

/** The checksum of `data`. */
export function dataChecksum(data: string): bigint {
  return BigInt(fnv1a(Buffer.from(`(string)${data}`)));
}

/** The file of a manager, and the formats that its kubelets write. */
export interface ManagerFile<Older extends Header, Newest extends Older & WithPods> {
  readonly name: string;
  /** The format with `podEntries`, and the variable that it is read into. */
  readonly newest: GoType<Newest>;
  readonly empty: Newest;
  /** Reads the formats without `podEntries`. @throws ERR_KUBELET_STATE */
  readonly readOlder: (json: GoJson) => Verified<Older>;
}

interface WithPods {
  readonly podEntries: ReadonlyMap<string, unknown> | null;
}

/**
 * Reads the text of a file. With the gate, the kubelet tries the newest format first, then the
 * others.
 * @throws ERR_KUBELET_STATE
 */
export function readManagerFile<Older extends Header, Newest extends Older & WithPods>(
  file: ManagerFile<Older, Newest>,
  content: string,
  options: KubeletFormatOptions,
): Verified<Older & { readonly podEntries: Newest['podEntries'] }> {
  const { name, newest, empty } = file;
  const json = parseJson(name, content);
  const read =
    readData(file, json, options) ??
    (() => {
      if (options.podLevelResourceManagers) {
        try {
          return readVerified(newest, { name, json, empty }, options);
        } catch (error) {
          if (!(error instanceof NumalignError)) throw error;
        }
      }
      return { ...readWithoutPodEntries(file, json, options), podEntries: null };
    })();
  checkPolicy(name, read, options);
  return read;
}

/**
 * Since 1.37 the file's content is in `data`, as a text, and the other members are a copy without
 * `podEntries` for older kubelets. Undefined for a file of an older kubelet.
 * @throws ERR_KUBELET_STATE, also where the kubelet would go back to the copy
 */
function readData<Older extends Header, Newest extends Older & WithPods>(
  { name, newest, empty }: ManagerFile<Older, Newest>,
  json: GoJson,
  { podLevelResourceManagers = false }: KubeletFormatOptions,
): Verified<Newest> | undefined {
  const { data, dataChecksum: value } = readInto(ENVELOPE, name, json, ENVELOPE.zero);
  if (data === '' && value === 0n) return undefined;
  checkChecksum(name, value, dataChecksum(data));
  const content = readInto(newest, `${name}.data`, parseJson(name, data), empty);
  if (!podLevelResourceManagers && content.podEntries?.size) losePodEntries(name);
  return { ...content, verified: true };
}

/**
 * Reads a file in one format, if its checksum is right, or if it has none and that is allowed.
 * @throws ERR_KUBELET_STATE
 */
export function readVerified<T extends Header>(
  type: GoType<T>,
  { name, json, empty }: { readonly name: string; readonly json: GoJson; readonly empty: T },
  { allowUnverified = false }: KubeletFormatOptions,
): Verified<T> {
  const file = readInto(type, name, json, empty);
  if (file.checksum !== 0n) {
    checkChecksum(name, file.checksum, checksumOf(type, file));
    return { ...file, verified: true };
  }
  if (allowUnverified) return { ...file, verified: false };
  return unusable(name, 'it has no checksum, so damage cannot be detected', {
    value: file.checksum,
    valid: 'a checksum, or allowUnverified',
  });
}

/**
 * Reads a file in an older format, which has no entries for pods as a whole. A checksum
 * distinguishes the formats: a file with such entries does not match. Without a checksum the
 * entries would be lost.
 * @throws ERR_KUBELET_STATE
 */
function readWithoutPodEntries<Older extends Header, Newest extends Older & WithPods>(
  { name, readOlder }: ManagerFile<Older, Newest>,
  json: GoJson,
  { podLevelResourceManagers = false }: KubeletFormatOptions,
): Verified<Older> {
  const hasPodEntries = json instanceof GoObject && json.members.some(([key]) => /^podEntries$/i.test(key));
  if (!hasPodEntries) return readOlder(json);
  try {
    const file = readOlder(json);
    if (file.verified) return file;
  } catch (error) {
    if (podLevelResourceManagers || !(error instanceof NumalignError)) throw error;
  }
  return losePodEntries(name);
}

function losePodEntries(name: string): never {
  return unusable(name, 'it has podEntries, which would be lost', {
    value: 'podEntries',
    valid: 'the feature gate PodLevelResourceManagers, and podEntries that can be read',
  });
}

function checkPolicy(
  name: string,
  { policyName: value }: Header,
  { policy: valid }: KubeletFormatOptions,
): void {
  if (valid === undefined || value === valid) return;
  const message = `its policy is ${JSON.stringify(value)}, not ${JSON.stringify(valid)}`;
  unusable(name, message, { value, valid });
}
