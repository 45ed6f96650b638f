// EmptyManager: what a program gets in place of an optional manager that cannot be opened.
import type { NumalignError } from '../base/errors.js';
import { type EmptyGrant, emptyGrant, type Optional } from '../grants/empty-grant.js';
import type { Grant } from '../grants/grant.js';
import { parseConfig } from '../input/config.js';
import { parseAcquire } from '../input/requests/request.js';
import type { AcquireOptions } from '../input/requests/request-options.js';
import type { Manager } from './manager.js';

/**
 * The result of {@link openManager} with `optional: true` if the machine cannot be opened. See
 * docs/platforms.md.
 */
export class EmptyManager
  implements Pick<Manager, 'acquire' | 'use' | 'close' | typeof Symbol.dispose | typeof Symbol.asyncDispose>
{
  /** Always true. */
  readonly isEmpty = true;
  /** Why there is no manager. */
  readonly reason: NumalignError;

  /** Use {@link openManager}. */
  constructor(reason: NumalignError) {
    this.reason = reason;
  }

  /**
   * Resolves with an {@link EmptyGrant} if the options have `optional: true`.
   * @throws the `reason` otherwise; ERR_INVALID_OPTION, ERR_INVALID_QUANTITY
   */
  async acquire(options: Optional<AcquireOptions>): Promise<Grant | EmptyGrant>;
  async acquire(options: AcquireOptions): Promise<Grant>;
  async acquire(options: AcquireOptions): Promise<Grant | EmptyGrant> {
    parseAcquire(options, parseConfig({}).placement);
    return emptyGrant(options, this.reason);
  }

  /** Calls `body` with the result of {@link acquire}. */
  async use<T>(
    options: Optional<AcquireOptions>,
    body: (grant: Grant | EmptyGrant) => T | Promise<T>,
  ): Promise<T>;
  async use<T>(options: AcquireOptions, body: (grant: Grant) => T | Promise<T>): Promise<T>;
  async use<T>(options: AcquireOptions, body: (grant: Grant & EmptyGrant) => T | Promise<T>): Promise<T> {
    return body((await this.acquire(options)) as Grant & EmptyGrant);
  }

  /** Does nothing. */
  close(): void {}

  [Symbol.dispose](): void {}

  async [Symbol.asyncDispose](): Promise<void> {}
}
