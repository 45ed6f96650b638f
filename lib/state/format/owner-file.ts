// The format of owners/<uuid>: the owner, and a line for each grant that it takes or gives up. If
// state.json is lost, numalign recovers the state from these files. Pure.
import { isHeldBy, type MachineSettings } from '../../account/assignments.js';
import type { KubeletRecord } from '../../account/kubelet-record.js';
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { native } from '../../base/native.js';
import type { Fields } from '../../base/shapes.js';
import { decodeSettings, versionFor } from './checkpoint.js';
import { decodeKubelet } from './kubelet-section.js';
import { cgroupIdentity, decodePod, OWNER_KINDS } from './pod-record.js';
import { encodeSettings, kubeletText, podText } from './pod-text.js';
import {
  checkVersion,
  corrupt,
  type FileFormat,
  headOf,
  linesOf,
  reading,
  readVersion1,
  sealedLength,
  sealLine,
  textOfMembers,
} from './sealed-json.js';
import { generation, listOf, object, oneOf, orNull, text, uuid, whole } from './shapes.js';

/** Version 3 records what the kubelet has given out, so that recovery finds it. */
export const OWNER_FORMAT: FileFormat = {
  name: 'numalign-owner',
  version: 4,
  older: [2, 3],
  what: 'the owner’s file',
};

export interface OwnerFile extends Omit<OwnerRecord, 'unknown'> {
  /** /proc/sys/kernel/random/boot_id at the time of writing: owners do not outlive a reboot. */
  readonly bootId: string;
  /**
   * The state's generation at the time of writing. A claim in this file is in the next generation
   * at the latest, or it failed.
   */
  readonly generation: number;
  readonly settings: MachineSettings;
  /** Set if this process records what the kubelet has given out; else null. */
  readonly kubelet: KubeletRecord | null;
  readonly pods: readonly PodAssignment[];
}

/** The text of a whole file. */
export function encodeOwnerFile(file: OwnerFile): string {
  return linesOfOwner(
    file,
    file.pods.map((pod) => claimLine(file.generation, pod)),
  ).join('');
}

/**
 * The lines of a whole file, from claim lines of earlier files. The last line has the generation.
 */
export const linesWithClaims = (file: OwnerFile, claims: readonly string[]): string[] =>
  linesOfOwner(file, [...claims, settingsLine(file.generation, file.settings)]);

function linesOfOwner({ settings, kubelet, pods: _, ...header }: OwnerFile, lines: readonly string[]) {
  const head = {
    ...headOf(OWNER_FORMAT, versionFor({ settings, kubelet })),
    ...header,
    settings: encodeSettings(settings),
  };
  const text = textOfMembers(head, kubelet ? { kubelet: kubeletText(kubelet) } : {});
  return [sealLine(text), ...lines, endLine(1 + lines.length)];
}

/** The line with which an owner takes a grant or changes it. */
export const claimLine = (generation: number, pod: PodAssignment): string =>
  sealLine(textOfMembers({ generation }, { pod: podText(pod) }));

/** The line with which an owner gives up a grant. */
export const releaseLine = (generation: number, uid: string): string =>
  sealLine(JSON.stringify({ generation, released: uid }));

/** The line with new settings of the state. */
export const settingsLine = (generation: number, settings: MachineSettings): string =>
  sealLine(JSON.stringify({ generation, settings: encodeSettings(settings) }));

const LINE_DIGITS = 10;
const digitsOf = (lines: number) => String(lines).padStart(LINE_DIGITS, '0');

/** The last line. It counts the lines before it, so that a cut shows. New lines overwrite it. */
export const endLine = (lines: number): string => sealLine(endText(lines));

const endText = (lines: number) => JSON.stringify({ lines: digitsOf(lines) });

/** Equal for any number of lines. */
export const END_LENGTH = sealedLength(endText(0));

/** @throws ERR_STATE_CORRUPT, and ERR_STATE_VERSION if a newer numalign wrote the file */
export function decodeOwnerFile(bytes: Buffer): OwnerFile {
  return reading(OWNER_FORMAT, () => {
    const { version, newer } = checkVersion(OWNER_FORMAT, bytes);
    if (newer) throw newer;
    const file = version === 1 ? readWhole(bytes) : readLines(bytes);
    const stranger = file.pods.find((pod) => !isHeldBy(pod, file.uuid));
    if (stranger) corrupt(`grant ${stranger.uid} in it belongs to another owner`, stranger.owner.uuid);
    if (file.kind === 'cgroup' && file.cgroup === null) corrupt('it names no cgroup');
    return file;
  });
}

// The beginning of a line other than the head.
const GENERATION = /^\{"generation":(\d{1,15}),/;
const GENERATION_LENGTH = 33;

/**
 * The generation of a file, from its last lines alone; undefined if they do not show it. `isWhole`:
 * its owner's seal shows that no byte differs.
 */
export function generationIn(bytes: Buffer, isWhole = false): number | undefined {
  const end = bytes.length - END_LENGTH;
  if (end <= 0) return undefined;
  const begin = bytes.lastIndexOf('\n', end - 2) + 1;
  const shown = isWhole && GENERATION.exec(bytes.toString('latin1', begin, begin + GENERATION_LENGTH))?.[1];
  if (shown) return Number(shown);
  const [last] = linesOf(bytes.subarray(begin));
  const found = last?.members?.generation;
  return typeof found === 'number' ? found : undefined;
}

// A file of version 1.
function readWhole(bytes: Buffer): OwnerFile {
  const members = readVersion1(bytes);
  return decodeHead(members, listOf(members.pods, 'pods', decodePod));
}

function readLines(bytes: Buffer): OwnerFile {
  const lines = [...linesOf(bytes)].map(({ members }) => members ?? corrupt('a line of it is damaged'));
  const end = lines.pop()?.lines;
  if (end !== digitsOf(lines.length)) return corrupt('it is cut short');
  const [head, ...steps] = lines;
  const pods = new Map<string, unknown>();
  let members = head;
  for (const { pod, released, ...others } of steps) {
    if (pod !== undefined) pods.set(text(object(pod, 'pod').uid, 'pod.uid'), pod);
    if (released !== undefined) pods.delete(text(released, 'released'));
    members = { ...members, ...others };
  }
  if (!members) return corrupt('it is empty');
  return decodeHead(members, listOf([...pods.values()], 'pods', decodePod));
}

function decodeHead(fields: Fields, pods: readonly PodAssignment[]): OwnerFile {
  return {
    uuid: uuid(fields.uuid, 'uuid'),
    kind: oneOf(fields.kind, 'kind', OWNER_KINDS),
    pid: orNull(fields.pid, 'pid', whole),
    command: orNull(fields.command, 'command', text),
    cgroup: orNull(fields.cgroup, 'cgroup', cgroupIdentity),
    bootId: text(fields.bootId, 'bootId'),
    generation: generation(fields.generation),
    settings: decodeSettings(fields.settings),
    kubelet: decodeKubelet(fields.kubelet, 'kubelet'),
    pods,
  };
}

// A settlement drops few grants.
const MOST_UNSEALED = 16;

/**
 * The part of a file that its owner has sealed: all of it, or what it said before the lines that the
 * owner wrote last, if it was stopped before it could seal them. Undefined if other programs changed it.
 */
export function sealedPart(bytes: Buffer, isSeal: (checksum: number) => boolean): Buffer | undefined {
  if (isSeal(native.crc32(bytes))) return bytes;
  let begin = bytes.length - END_LENGTH;
  const end = begin > 0 ? linesOf(bytes.subarray(begin)).next().value?.members?.lines : undefined;
  const most = Math.min(Number(end ?? 0) - 1, MOST_UNSEALED);
  for (let dropped = 1; dropped <= most; dropped++) {
    begin = bytes.lastIndexOf('\n', begin - 2) + 1;
    const [before, last] = [bytes.subarray(0, begin), endLine(Number(end) - dropped)];
    if (isSeal(native.crc32(last, native.crc32(before)))) return Buffer.concat([before, Buffer.from(last)]);
  }
  return undefined;
}

/** The kind of the owner, even from a damaged file; undefined if it cannot be read. */
export function kindIn(bytes: Buffer): OwnerRecord['kind'] | undefined {
  return /"kind":"(process|cgroup|persistent)"/.exec(bytes.subarray(0, 200).toString('latin1'))?.[1] as
    | OwnerRecord['kind']
    | undefined;
}
