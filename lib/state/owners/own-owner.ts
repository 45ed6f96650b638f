// OwnOwner: this environment (main thread or Worker) as an owner. Its locked file lists its grants.
import { isHeldBy } from '../../account/assignments.js';
import type { KubeletRecord } from '../../account/kubelet-record.js';
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { isNumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { NativeFolder, NativeOwner } from '../../base/native-files.js';
import { lockRange } from '../files/owner-locks.js';
import { type ChangeNames, changeAlone } from '../files/owner-names.js';
import {
  claimLine,
  END_LENGTH,
  endLine,
  linesWithClaims,
  type OwnerFile,
  releaseLine,
  settingsLine,
} from '../format/owner-file.js';
import { kubeletText, podText } from '../format/pod-text.js';
import { bytesOf } from '../format/sealed-json.js';
import { fileOf, type Header, newOwner } from './owner-record.js';

// The file is rewritten once it has this many times its length at the last rewrite.
const MOST_GROWTH = 2;
const LEAST_TO_REWRITE = 1 << 14;

interface Change {
  readonly header: Header;
  readonly newClaims: readonly PodAssignment[];
  readonly droppedUids: readonly string[];
}

export class OwnOwner {
  readonly record: OwnerRecord;
  /** The first generation of the state that has all that the file claims, or a later one. */
  since: number;
  #lock: NativeOwner;
  // Locks of removed files. Where the removed folder is now, they show its users that this process
  // lives.
  readonly #formerFiles: NativeOwner[] = [];
  #header: Header;
  // The pods that the file claims, by uid.
  #pods = new Map<string, PodAssignment>();
  #kubelet: KubeletRecord | null = null;
  // The claim lines of the pods; encoding a long file again takes long.
  #claims = new Map<string, { readonly pod: PodAssignment; readonly line: string }>();
  // The length of the file, its length when last written whole, and its number of lines.
  #bytes = 0;
  #wholeBytes = 0;
  #lines = 0;
  // The checksum of all lines but the last.
  #checksum = 0;
  // True if the file may differ from what it should say.
  #isTorn = false;

  /** `folder`: owners/ of the state folder at `path`. @throws ERR_SYSCALL */
  constructor(
    private readonly folder: NativeFolder,
    private readonly path: string,
    header: Header,
    change: ChangeNames = changeAlone,
  ) {
    this.record = newOwner('process', native.randomUuid());
    this.#header = header;
    this.since = header.generation;
    const isThere = (lock: NativeOwner) => lock.isCurrent(folder);
    this.#lock = change([this.record.uuid], () => this.#createFile(), isThere);
  }

  #createFile(): NativeOwner {
    const { uuid } = this.record;
    const range = lockRange(uuid, this.path);
    return this.folder.createOwner(uuid, this.#whole().toString(), ...range, this.since);
  }

  #seal(): void {
    this.#lock.seal(this.#fileChecksum, this.since);
  }

  get #fileChecksum(): number {
    return native.crc32(endLine(this.#lines), this.#checksum);
  }

  // The bytes of the whole file. Counts them as written.
  #whole(): Buffer {
    const { file } = this;
    const known = this.#claims;
    this.#claims = new Map();
    const claims = file.pods.map((pod) => this.#claimLine(file.generation, pod, known));
    const lines = linesWithClaims(file, claims);
    const bytes = bytesOf(lines);
    this.#bytes = bytes.length;
    this.#wholeBytes = this.#bytes;
    this.#lines = lines.length - 1;
    this.#checksum = native.crc32(bytes.subarray(0, -END_LENGTH));
    return bytes;
  }

  #claimLine(generation: number, pod: PodAssignment, among = this.#claims): string {
    const known = among.get(pod.uid);
    const line = known?.pod === pod ? known.line : claimLine(generation, pod);
    this.#claims.set(pod.uid, { pod, line });
    return line;
  }

  /** The contents of the file. */
  get file(): OwnerFile {
    return fileOf(this.record, this.#header, [...this.#pods.values()], this.#kubelet);
  }

  get fd(): number {
    return this.#lock.fd;
  }

  get holdsGrant(): boolean {
    return this.#pods.size > 0;
  }

  /** True if this process records what the kubelet has given out. */
  get keepsKubelet(): boolean {
    return this.#kubelet !== null;
  }

  /** True if the file still has its name. */
  get isCurrent(): boolean {
    return this.#lock.isCurrent(this.folder);
  }

  holds(pod: PodAssignment): boolean {
    return isHeldBy(pod, this.record.uuid);
  }

  /**
   * Claims or changes some grants and gives up others. Appends a line for each that the file does
   * not have yet. `header`: the state at this time.
   * @throws ERR_SYSCALL; the file then says what it said before
   */
  write(header: Header, claims: readonly PodAssignment[], endedUids: readonly string[]): void {
    const newClaims = claims.filter((pod) => !isSame(this.#pods.get(pod.uid), pod));
    const droppedUids = endedUids.filter((uid) => this.#pods.has(uid));
    if (newClaims.length + droppedUids.length === 0 && !this.#isTorn) {
      // Keep the same objects: they compare faster the next time.
      for (const pod of claims) this.#pods.set(pod.uid, pod);
      return;
    }
    const { generation, settings } = header;
    const lines = [
      ...(settings === this.#header.settings ? [] : [settingsLine(generation, settings)]),
      ...newClaims.map((pod) => this.#claimLine(generation, pod)),
      ...droppedUids.map((uid) => releaseLine(generation, uid)),
    ];
    // Claims come under the state's lock. Without it, others may read the file while it is rewritten.
    const isDue =
      newClaims.length > 0 && this.#bytes > Math.max(LEAST_TO_REWRITE, MOST_GROWTH * this.#wholeBytes);
    const change = { header, newClaims, droppedUids };
    const canGrow = !this.#isTorn && !isDue && header.bootId === this.#header.bootId;
    if (canGrow && this.#grow(lines, change)) this.#note(change);
    else this.#writeWhole(change);
  }

  // A file with fewer claims fits on a full disk.
  #grow(lines: readonly string[], { newClaims }: Change): boolean {
    try {
      return this.#append(lines);
    } catch (error) {
      if (newClaims.length > 0) throw error;
      return false;
    }
  }

  #note({ header, newClaims, droppedUids }: Change): void {
    this.#header = header;
    for (const uid of droppedUids) {
      this.#pods.delete(uid);
      this.#claims.delete(uid);
    }
    for (const pod of newClaims) this.#pods.set(pod.uid, pod);
  }

  // False if other programs have changed the file.
  #append(lines: readonly string[]): boolean {
    const count = this.#lines + lines.length;
    const text = lines.join('');
    const at = this.#bytes - END_LENGTH;
    try {
      const checksum = this.#lock.append(at, text, endLine(count), this.#checksum, this.since);
      if (checksum === undefined) return false;
      this.#checksum = checksum;
    } catch (error) {
      // The old lines fitted before, so they fit again.
      this.#isTorn = true;
      this.#lock.writeAt(at, endLine(this.#lines));
      this.#lock.cut(this.#bytes);
      this.#isTorn = isNumalignError(error, 'ERR_SYSCALL') && error.syscall === 'fcntl';
      throw error;
    }
    this.#bytes += Buffer.byteLength(text);
    this.#lines = count;
    return true;
  }

  #writeWhole(change: Change, kubelet = this.#kubelet): void {
    const before = { header: this.#header, pods: new Map(this.#pods), kubelet: this.#kubelet };
    this.#note(change);
    this.#kubelet = kubelet;
    try {
      this.#rewrite();
    } catch (error) {
      this.#header = before.header;
      this.#pods = before.pods;
      this.#kubelet = before.kubelet;
      this.#rewrite();
      throw error;
    }
  }

  #rewrite(): void {
    this.#isTorn = true;
    this.#lock.write(this.#whole());
    this.#seal();
    this.#isTorn = false;
  }

  /**
   * Records what the kubelet has given out, if this process keeps that record; else null.
   * @throws ERR_SYSCALL; the file then says what it said before
   */
  keep(header: Header, kubelet: KubeletRecord | null): void {
    const before = this.#kubelet;
    const isWritten =
      before === kubelet || (before && kubelet && kubeletText(before) === kubeletText(kubelet));
    if (!isWritten) this.#writeWhole({ header, newClaims: [], droppedUids: [] }, kubelet);
    // Keep the same object: it compares faster the next time.
    this.#kubelet = kubelet;
  }

  /** Rewrites a file that may be damaged. @throws ERR_SYSCALL */
  writeAll(header: Header, pods: readonly PodAssignment[]): void {
    this.#writeWhole({ header, newClaims: pods, droppedUids: this.#uidsWithout(pods) });
  }

  /** Claims exactly these grants, as they are. @throws ERR_SYSCALL */
  agree(header: Header, pods: readonly PodAssignment[]): void {
    this.write(header, pods, this.#uidsWithout(pods));
  }

  // The claimed pods that are not among these.
  #uidsWithout(pods: readonly PodAssignment[]): string[] {
    const uids = new Set(pods.map(({ uid }) => uid));
    return [...this.#pods.keys()].filter((uid) => !uids.has(uid));
  }

  /**
   * Writes the file again if it was removed, replaced or overwritten. Returns true if it was.
   * @throws ERR_SYSCALL
   */
  reassert(): boolean {
    const isThere = this.isCurrent;
    if (isThere && this.#isWhole()) return false;
    this.#isTorn = true;
    if (isThere) {
      this.#rewrite();
    } else {
      // The names are no longer kept: a child may hold the former lock.
      const lock = this.#createFile();
      this.#formerFiles.push(this.#lock);
      this.#lock = lock;
      this.#isTorn = false;
    }
    return true;
  }

  // True if the file on disk is what this process wrote.
  #isWhole(): boolean {
    const bytes = this.folder.read(this.record.uuid);
    return bytes !== undefined && native.crc32(bytes) === this.#fileChecksum;
  }

  /** Releases the locks. The owner is dead then, unless a child has a copy of a descriptor. */
  close(): void {
    for (const lock of [this.#lock, ...this.#formerFiles]) lock.close();
  }
}

const isSame = (a: PodAssignment | undefined, b: PodAssignment) =>
  a === b || (a !== undefined && podText(a) === podText(b));
