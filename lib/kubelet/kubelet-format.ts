// KubeletFormat: the kubelet's state files (v1.32 and v1.36), cpu_manager_state and
// memory_manager_state. Text <-> values, byte for byte and with checksums. Pure. Reads like the
// kubelet, except that it does not trust a file without a checksum.
import { type ErrorDetails, NumalignError } from '../base/errors.js';
import { type GoJson, GoObject, parseGoJson } from './go-json.js';
import { type GoType, GoTypeError, text, uint64 } from './go-value.js';

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

export function mapValues<K, A, B>(from: ReadonlyMap<K, A>, change: (value: A) => B): Map<K, B> {
  return new Map(Array.from(from, ([key, value]) => [key, change(value)]));
}

export function unusable(name: string, message: string, details: ErrorDetails = {}): never {
  throw new NumalignError('ERR_KUBELET_STATE', `${name} cannot be used: ${message}`, {
    file: name,
    ...details,
  });
}

export function parseJson(name: string, file: string): GoJson {
  try {
    return parseGoJson(file);
  } catch (cause) {
    return unusable(name, `it is not JSON (${(cause as Error).message})`, {
      value: file,
      valid: 'JSON',
      cause,
    });
  }
}

export function readInto<T extends Header>(type: GoType<T>, name: string, json: GoJson, empty: T): T {
  try {
    return type.read(json, empty, name);
  } catch (cause) {
    if (!(cause instanceof GoTypeError)) throw cause;
    return unusable(name, cause.message, { valid: "the kubelet's fields", cause });
  }
}

export function checkChecksum<T extends Header>(type: GoType<T>, name: string, file: T): void {
  const valid = checksumOf(type, file);
  if (file.checksum === valid) return;
  unusable(name, `it is damaged: its checksum is ${file.checksum}, its content has ${valid}`, {
    value: file.checksum,
    valid,
  });
}

/**
 * The file if its checksum is right, or if it has none and that is allowed.
 * @throws ERR_KUBELET_STATE
 */
export function verified<T extends Header>(
  type: GoType<T>,
  name: string,
  file: T,
  { allowUnverified = false }: KubeletFormatOptions,
): Verified<T> {
  if (file.checksum !== 0n) {
    checkChecksum(type, name, file);
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
export function readWithoutPodEntries<T extends { readonly verified: boolean }>(
  name: string,
  json: GoJson,
  { podLevelResourceManagers = false }: KubeletFormatOptions,
  read: () => T,
): T {
  if (!(json instanceof GoObject && json.members.some(([key]) => /^podEntries$/i.test(key)))) return read();
  try {
    const file = read();
    if (file.verified) return file;
  } catch (error) {
    if (podLevelResourceManagers || !(error instanceof NumalignError)) throw error;
  }
  return unusable(name, 'it has podEntries, which would be lost', {
    value: 'podEntries',
    valid: 'the feature gate PodLevelResourceManagers, and podEntries that can be read',
  });
}

export function checkPolicy(
  name: string,
  { policyName: value }: Header,
  { policy: valid }: KubeletFormatOptions,
): void {
  if (valid === undefined || value === valid) return;
  unusable(name, `its policy is ${JSON.stringify(value)}, not ${JSON.stringify(valid)}`, {
    value,
    valid,
  });
}
