// Finds the grant that a user names. Pure.
import { NumalignError } from 'numalign';

/** The least number of characters that identify an id. */
export const ID_PREFIX = 4;

interface Named {
  readonly uid: string;
  readonly name: string;
}

function describe({ uid, name }: Named): string {
  return name === uid ? uid : `${uid} (${name})`;
}

/**
 * The grant with this uid; else the only one whose uid begins with the text (4 characters or more)
 * or that has this name.
 * @throws ERR_UNKNOWN_GRANT, which lists the grants; ERR_INVALID_ARGUMENT if several match
 */
export function findGrant<Grant extends Named>(
  grants: readonly Grant[],
  text: string,
  stateDir: string,
): Grant {
  const exact = grants.find((grant) => grant.uid === text);
  if (exact) return exact;
  const matches = grants.filter(
    ({ uid, name }) => name === text || (text.length >= ID_PREFIX && uid.startsWith(text)),
  );
  if (matches.length === 1) return matches[0]!;
  if (matches.length > 1) {
    throw new NumalignError(
      'ERR_INVALID_ARGUMENT',
      `"${text}" may mean ${matches.map(describe).join(' or ')}: give an id`,
      {
        value: text,
        valid: matches.map(({ uid }) => uid),
      },
    );
  }
  const valid = grants.map(({ uid }) => uid);
  const list = grants.length === 0 ? 'nothing is granted' : `there is ${grants.map(describe).join(', ')}`;
  throw new NumalignError('ERR_UNKNOWN_GRANT', `there is no grant "${text}" in ${stateDir}: ${list}`, {
    value: text,
    valid,
  });
}
