// CdiFiles: prepared claims, as files that a runtime reads (Container Device Interface): a device for
// each part of a claim, which sets the variable by which numalign knows the containers that use it.
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { claimOfGrant, claimVariable } from '../../claims/claim-names.js';
import type { PreparedClaim } from '../../claims/claimed-holdings.js';

/** The folder that runtimes read by default, which does not outlive the machine. */
export const CDI_FOLDER = '/var/run/cdi';

/** A device of a claim, which a grant stands for. */
export interface ClaimDevice {
  readonly grant: string;
  readonly pool: string;
  readonly device: string;
}

/** What is known of a prepared claim. */
export interface ClaimRecord extends PreparedClaim {
  readonly devices: readonly ClaimDevice[];
  /** The uids of its grants, one for each part. */
  readonly grants: readonly string[];
}

const VERSION = '0.6.0';
const CLASS = 'claim';
// Another program may read a folder at any time: it takes files with other endings.
const UNFINISHED = '.tmp';

export class CdiFiles {
  readonly #folder: string;
  readonly #kind: string;
  readonly #annotation: string;
  readonly #prefix: string;

  constructor(folder: string, driver: string) {
    this.#folder = folder;
    this.#kind = `${driver}/${CLASS}`;
    this.#annotation = `${driver}/${CLASS}`;
    this.#prefix = `${driver}-${CLASS}_`;
  }

  /** The name by which a kubelet tells a runtime of a part of a claim. */
  idOf(grantUid: string): string {
    return `${this.#kind}=${deviceName(grantUid)}`;
  }

  #path(claimUid: string): string {
    return join(this.#folder, `${this.#prefix}${claimUid}.json`);
  }

  /** Undefined if it is not prepared; what cannot be read is not. */
  read(claimUid: string): ClaimRecord | undefined {
    try {
      const { annotations } = JSON.parse(readFileSync(this.#path(claimUid), 'utf8'));
      const record = JSON.parse(annotations[this.#annotation]) as ClaimRecord;
      return record.uid === claimUid ? record : undefined;
    } catch {
      return undefined;
    }
  }

  /** The uids of the claims with files. */
  get claimUids(): string[] {
    const names = unlessMissing(() => readdirSync(this.#folder), []);
    return names
      .filter((name) => name.startsWith(this.#prefix) && name.endsWith('.json'))
      .map((name) => name.slice(this.#prefix.length, -'.json'.length));
  }

  /** A runtime sees the file as it was, or as it is then. */
  write(record: ClaimRecord): void {
    const path = this.#path(record.uid);
    const text = JSON.stringify({
      ...{ cdiVersion: VERSION, kind: this.#kind },
      annotations: { [this.#annotation]: JSON.stringify(record) },
      devices: record.grants.map((uid) => ({
        name: deviceName(uid),
        containerEdits: { env: [claimVariable(uid)] },
      })),
    });
    mkdirSync(this.#folder, { recursive: true });
    if (unlessMissing(() => readFileSync(path, 'utf8'), '') === text) return;
    writeFileSync(`${path}${UNFINISHED}`, text, { mode: 0o644 });
    renameSync(`${path}${UNFINISHED}`, path);
  }

  remove(claimUid: string): void {
    for (const path of [this.#path(claimUid), `${this.#path(claimUid)}${UNFINISHED}`])
      rmSync(path, { force: true });
  }
}

const deviceName = (grantUid: string): string => `${claimOfGrant(grantUid)}-${grantUid.split('.').at(-1)}`;

function unlessMissing<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return otherwise;
    throw error;
  }
}
