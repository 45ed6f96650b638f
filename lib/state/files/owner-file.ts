// The format of owners/<uuid>: who the owner is, and a copy of its grants, by which the state is
// put together again where its own file is lost. Pure.
import type { MachineSettings } from '../../account/assignments.js';
import { isHeldBy } from '../../account/assignments.js';
import type { CgroupIdentity, OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { decodeSettings } from './checkpoint.js';
import { cgroupIdentity, decodePod } from './pod-record.js';
import { encodeSettings, podsText } from './pod-text.js';
import { corrupt, type FileFormat, reading, seal, unseal } from './sealed-json.js';
import { generation, listOf, oneOf, orNull, text, uuid, whole } from './shapes.js';

export const OWNER_FORMAT: FileFormat = { name: 'numalign-owner', version: 1, what: 'the owner’s file' };

const KINDS = ['process', 'cgroup', 'persistent'] as const;

export interface OwnerFile {
  readonly uuid: string;
  readonly kind: OwnerRecord['kind'];
  readonly pid: number | null;
  readonly command: string | null;
  readonly cgroup: CgroupIdentity | null;
  /** /proc/sys/kernel/random/boot_id when it was written: owners do not outlive a reboot. */
  readonly bootId: string;
  /**
   * Of the state when this was written: what is claimed here is in the next generation at the
   * latest, or came to nothing.
   */
  readonly generation: number;
  readonly settings: MachineSettings;
  readonly pods: readonly PodAssignment[];
}

export function encodeOwnerFile({ settings, pods, ...header }: OwnerFile): string {
  return seal(OWNER_FORMAT, { ...header, settings: encodeSettings(settings) }, { pods: podsText(pods) }, {});
}

/** @throws ERR_STATE_CORRUPT, and ERR_STATE_VERSION where a newer numalign wrote it */
export function decodeOwnerFile(bytes: Buffer): OwnerFile {
  return reading(OWNER_FORMAT, () => {
    const { members: given, newer } = unseal(OWNER_FORMAT, bytes);
    if (newer) throw newer;
    const file: OwnerFile = {
      uuid: uuid(given.uuid, 'uuid'),
      kind: oneOf(given.kind, 'kind', KINDS),
      pid: orNull(given.pid, 'pid', whole),
      command: orNull(given.command, 'command', text),
      cgroup: orNull(given.cgroup, 'cgroup', cgroupIdentity),
      bootId: text(given.bootId, 'bootId'),
      generation: generation(given.generation),
      settings: decodeSettings(given.settings),
      pods: listOf(given.pods, 'pods', decodePod),
    };
    const stranger = file.pods.find((pod) => !isHeldBy(pod, file.uuid));
    if (stranger) corrupt(`grant ${stranger.uid} in it is of another owner`, stranger.owner.uuid);
    if (file.kind === 'cgroup' && file.cgroup === null) corrupt('it names no cgroup');
    return file;
  });
}

/**
 * The kind that a file says its owner has, as far as it can be made out although the file is
 * damaged.
 */
export function kindIn(bytes: Buffer): OwnerRecord['kind'] | undefined {
  return /"kind":"(process|cgroup|persistent)"/.exec(bytes.subarray(0, 200).toString('latin1'))?.[1] as
    | OwnerRecord['kind']
    | undefined;
}
