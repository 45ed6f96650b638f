// Writes values to settings of the kernel, and reads them back.
import { errorName } from '../base/codes/errno.js';
import { nextTurn } from '../base/steps.js';
import type { Setting } from './kernel/setting.js';
import { SETTINGS_AT_ONCE } from './look.js';
import type { Change } from './plan.js';
import type { WriteRefusal, WriteRefusals } from './record.js';

/**
 * Writes one value after the other, with turns of the event loop. Returns what the kernel has
 * refused.
 */
export async function writeAll(changes: readonly Change[]): Promise<WriteRefusals> {
  const refusals = new Map<Setting, WriteRefusal>();
  for (const [i, { setting, target }] of changes.entries()) {
    const refusal = await write(setting, target);
    if (refusal) refusals.set(setting, refusal);
    if ((i + 1) % SETTINGS_AT_ONCE === 0) await nextTurn();
  }
  return refusals;
}

/** Writes back what changes have replaced, the last first. What is refused stays as it is. */
export async function rewrite(changes: readonly Change[]): Promise<void> {
  await writeAll(changes.toReversed().map((change) => ({ ...change, target: change.value })));
}

async function write(setting: Setting, target: string): Promise<WriteRefusal | undefined> {
  try {
    await setting.write(target);
    const value = await setting.read();
    return value === undefined || value === target ? undefined : { reason: `it became ${value}`, value };
  } catch (error) {
    const reason = errorName(error as NodeJS.ErrnoException) ?? (error as Error).message;
    return (await hasDisappeared(setting)) ? undefined : { reason, value: undefined };
  }
}

async function hasDisappeared(setting: Setting): Promise<boolean> {
  try {
    return (await setting.read()) === undefined;
  } catch {
    return false;
  }
}
