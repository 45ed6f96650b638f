// The health of `numalign agent`: whether its state can be read and changed, and what became of the
// last round of reconciling.
import { thrownText } from '../../base/check-options.js';
import { checkWritable } from '../../base/writable.js';
import type { Manager } from '../../index.js';

/** What is wrong, in plain words; nothing where all is well. `lastFailure`: of reconciling. */
export function ailments(manager: Manager, lastFailure: unknown): string[] {
  const ailments: string[] = [];
  try {
    const refusal = manager.refusal();
    if (refusal) ailments.push(`nothing is granted: ${refusal.message}`);
  } catch (error) {
    ailments.push(`the state cannot be read: ${thrownText(error)}`);
  }
  try {
    checkWritable(manager.stateDir);
  } catch (error) {
    ailments.push(`the state folder cannot be written: ${thrownText(error)}`);
  }
  if (lastFailure !== undefined) ailments.push(`reconciling has failed: ${thrownText(lastFailure)}`);
  return ailments;
}
