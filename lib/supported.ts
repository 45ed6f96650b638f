// supported: whether the addon works here.
import type { NumalignError } from './base/errors.js';
import { addonError } from './base/native.js';

/**
 * The type of {@link supported}. `reason` is null if the addon works, else the ERR_ADDON_MISSING error
 * that says why not.
 */
export type Support =
  | { readonly isSupported: true; readonly reason: null }
  /** Why not: ERR_ADDON_MISSING. Every function that needs the addon throws such an error. */
  | { readonly isSupported: false; readonly reason: NumalignError };

/**
 * Whether the native addon works here. Without it the `reason` is the ERR_ADDON_MISSING error that
 * every call which needs the addon throws. See docs/platforms.md.
 */
export const supported: Support = Object.freeze(
  addonError === null ? { isSupported: true, reason: null } : { isSupported: false, reason: addonError },
);
