// Parts of quiet that a request requires.
import type { QuietPart } from '../account/pod-assignment.js';
import { NumalignError } from '../base/errors.js';
import type { QuietOutcome } from './outcome.js';

/** Why a grant does not have what it requires; undefined if it does. */
export function quietShortfall(
  { parts }: QuietOutcome,
  required: readonly QuietPart[],
): NumalignError | undefined {
  const missing = required.filter((part) => parts[part]?.reached !== 'yes');
  if (missing.length === 0) return undefined;
  const why = missing.flatMap((part) => parts[part]?.reasons.map((reason) => `${part}: ${reason}`) ?? [part]);
  return new NumalignError(
    'ERR_QUIET',
    `quiet ${missing.join(', ')} is required but not fully reached here: ${why.join('; ')}`,
    {
      value: missing,
      valid: Object.keys(parts).filter((part) => parts[part as QuietPart]!.reached === 'yes'),
      why,
    },
  );
}
