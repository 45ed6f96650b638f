// OwnOwner: this environment (main thread or Worker) as an owner. Its locked file says which grants
// are its own.
import { randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { isHeldBy } from '../../account/assignments.js';
import type { KubeletRecord } from '../../account/kubelet-record.js';
import type { OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import type { NativeFolder, NativeOwner } from '../../base/native-files.js';
import { lockRange } from '../files/owner-locks.js';
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

// The file is written whole again once it is this many times as long as what it says.
const MOST_REPETITION = 2;
const LEAST_TO_REWRITE = 1 << 14;

export class OwnOwner {
  readonly record: OwnerRecord;
  readonly #folder: NativeFolder;
  readonly #path: string;
  #lock: NativeOwner;
  // Of files that were removed: where the folder is now that they were in, its users see that this
  // process lives.
  readonly #earlier: NativeOwner[] = [];
  #header: Header;
  // By uid, what the file claims.
  #pods = new Map<string, PodAssignment>();
  #kubelet: KubeletRecord | null = null;
  // The lines that say so. To make them again for a file of many takes long.
  readonly #claims = new WeakMap<PodAssignment, string>();
  // How long the file is, how long when it was written whole, and how many lines are in it.
  #bytes = 0;
  #wholeBytes = 0;
  #lines = 0;
  // Of all lines but the last.
  #checksum = 0;
  // The file may not say what it should.
  #isTorn = false;

  /** `folder`: owners/ of the state folder at `path`. @throws ERR_SYSCALL */
  constructor(folder: NativeFolder, path: string, header: Header) {
    this.record = newOwner('process', randomUUID());
    this.#folder = folder;
    this.#path = path;
    this.#header = header;
    this.#lock = this.#createFile();
  }

  #createFile(): NativeOwner {
    const { uuid } = this.record;
    return this.#folder.createOwner(uuid, this.#whole().toString(), ...lockRange(uuid, this.#path));
  }

  // What is to be written whole; it is counted as written.
  #whole(): Buffer {
    const { file } = this;
    const claims = file.pods.map((pod) => this.#claims.get(pod) ?? this.#claimLine(file.generation, pod));
    const lines = linesWithClaims(file, claims);
    const bytes = bytesOf(lines);
    this.#bytes = bytes.length;
    this.#wholeBytes = this.#bytes;
    this.#lines = lines.length - 1;
    this.#checksum = crc32(bytes.subarray(0, -END_LENGTH));
    return bytes;
  }

  #claimLine(generation: number, pod: PodAssignment): string {
    const line = claimLine(generation, pod);
    this.#claims.set(pod, line);
    return line;
  }

  /** What is in the file. */
  get file(): OwnerFile {
    return fileOf(this.record, this.#header, [...this.#pods.values()], this.#kubelet);
  }

  get fd(): number {
    return this.#lock.fd;
  }

  get holdsGrant(): boolean {
    return this.#pods.size > 0;
  }

  /** Whether it keeps on record what the kubelet has given out. */
  get keepsKubelet(): boolean {
    return this.#kubelet !== null;
  }

  /** Whether the file still has its name. */
  get isCurrent(): boolean {
    return this.#lock.isCurrent(this.#folder);
  }

  holds(pod: PodAssignment): boolean {
    return isHeldBy(pod, this.record.uuid);
  }

  /**
   * Claims some grants, or has them in another form, and gives up others: a line for each, where the
   * file does not say so already. `header`: what the state was then.
   * @throws ERR_SYSCALL; then the file says what it said before
   */
  write(header: Header, claims: readonly PodAssignment[], released: readonly string[]): void {
    const news = claims.filter((pod) => !isSame(this.#pods.get(pod.uid), pod));
    const gone = released.filter((uid) => this.#pods.has(uid));
    if (news.length + gone.length === 0 && !this.#isTorn) {
      // The same objects compare faster the next time.
      for (const pod of claims) this.#pods.set(pod.uid, pod);
      return;
    }
    const { generation, settings } = header;
    const lines = [
      ...(settings === this.#header.settings ? [] : [settingsLine(generation, settings)]),
      ...news.map((pod) => this.#claimLine(generation, pod)),
      ...gone.map((uid) => releaseLine(generation, uid)),
    ];
    const isDue = this.#bytes > Math.max(LEAST_TO_REWRITE, MOST_REPETITION * this.#wholeBytes);
    if (this.#isTorn || isDue || this.#lock.size() !== this.#bytes || header.bootId !== this.#header.bootId)
      this.#writeWhole(header, news, gone);
    else this.#appendOrShorten(lines, header, news, gone);
  }

  #appendOrShorten(
    lines: readonly string[],
    header: Header,
    news: readonly PodAssignment[],
    gone: readonly string[],
  ): void {
    try {
      this.#append(lines);
    } catch (error) {
      if (news.length > 0) throw error;
      // What says less fits on a full disk too.
      this.#writeWhole(header, news, gone);
      return;
    }
    this.#note(header, news, gone);
  }

  #note(header: Header, news: readonly PodAssignment[], gone: readonly string[]): void {
    this.#header = header;
    for (const uid of gone) this.#pods.delete(uid);
    for (const pod of news) this.#pods.set(pod.uid, pod);
  }

  #append(lines: readonly string[]): void {
    const count = this.#lines + lines.length;
    const news = lines.join('');
    const at = this.#bytes - END_LENGTH;
    try {
      this.#lock.writeAt(at, `${news}${endLine(count)}`);
    } catch (error) {
      // What fitted before fits again.
      this.#isTorn = true;
      this.#lock.writeAt(at, endLine(this.#lines));
      this.#lock.cut(this.#bytes);
      this.#isTorn = false;
      throw error;
    }
    this.#bytes += Buffer.byteLength(news);
    this.#lines = count;
    this.#checksum = crc32(news, this.#checksum);
  }

  #writeWhole(
    header: Header,
    news: readonly PodAssignment[],
    gone: readonly string[],
    kubelet = this.#kubelet,
  ): void {
    const before = { header: this.#header, pods: new Map(this.#pods), kubelet: this.#kubelet };
    this.#note(header, news, gone);
    this.#kubelet = kubelet;
    this.#isTorn = true;
    try {
      this.#lock.write(this.#whole());
      this.#isTorn = false;
    } catch (error) {
      this.#header = before.header;
      this.#pods = before.pods;
      this.#kubelet = before.kubelet;
      this.#lock.write(this.#whole());
      this.#isTorn = false;
      throw error;
    }
  }

  /**
   * What the kubelet has given out, where this process keeps it on record; else null.
   * @throws ERR_SYSCALL; then the file says what it said before
   */
  keep(header: Header, kubelet: KubeletRecord | null): void {
    const known = this.#kubelet;
    const isSaid = known === kubelet || (known && kubelet && kubeletText(known) === kubeletText(kubelet));
    if (!isSaid) this.#writeWhole(header, [], [], kubelet);
    // The same objects compare faster the next time.
    this.#kubelet = kubelet;
  }

  /** Writes all of it again: the file may be damaged. @throws ERR_SYSCALL */
  writeAll(header: Header, pods: readonly PodAssignment[]): void {
    const released = [...this.#pods.keys()].filter((uid) => !pods.some((pod) => pod.uid === uid));
    this.#writeWhole(header, pods, released);
  }

  /** Gives up every grant that is not among these, and has these as they are. @throws ERR_SYSCALL */
  agree(header: Header, pods: readonly PodAssignment[]): void {
    const uids = new Set(pods.map(({ uid }) => uid));
    this.write(
      header,
      pods,
      [...this.#pods.keys()].filter((uid) => !uids.has(uid)),
    );
  }

  /**
   * Writes the file again where it was removed, replaced or overwritten. Answers whether it was.
   * @throws ERR_SYSCALL
   */
  reassert(): boolean {
    const isThere = this.isCurrent;
    if (isThere && this.#isWhole()) return false;
    this.#isTorn = true;
    if (isThere) {
      this.#lock.write(this.#whole());
    } else {
      const lock = this.#createFile();
      this.#earlier.push(this.#lock);
      this.#lock = lock;
    }
    this.#isTorn = false;
    return true;
  }

  // Whether the file says what was written.
  #isWhole(): boolean {
    const bytes = this.#folder.read(this.record.uuid);
    return bytes !== undefined && crc32(bytes) === crc32(endLine(this.#lines), this.#checksum);
  }

  /** Lets its locks go: it is dead, unless a child has a copy. */
  close(): void {
    for (const lock of [this.#lock, ...this.#earlier]) lock.close();
  }
}

const isSame = (a: PodAssignment | undefined, b: PodAssignment) =>
  a === b || (a !== undefined && podText(a) === podText(b));
