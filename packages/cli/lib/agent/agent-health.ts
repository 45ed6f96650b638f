// The health of `numalign agent`: can it read and change the state, and did the last round of
// reconciling succeed?
import type { Manager } from 'numalign';
import { checkWritable, thrownText } from 'numalign/tools';

/** What is wrong, for people; empty if all is well. `lastFailure`: the error of the last round. */
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
