// Access: where the API server is, and what this process shows it.
import type { WatchedFile } from './watched-file.js';

/** A text that another program may replace. */
export type Secret = Pick<WatchedFile, 'read' | 'readAgain'>;

export interface Access {
  /** `https://HOST:PORT`. */
  readonly url: string;
  /** PEM certificates of the CA that signed the server's; undefined: those that Node trusts. */
  readonly ca: Secret | undefined;
  /** A bearer token. */
  readonly token: Secret | undefined;
  /** A certificate of this process, as PEM. */
  readonly client: { readonly certificate: Secret; readonly key: Secret } | undefined;
}
