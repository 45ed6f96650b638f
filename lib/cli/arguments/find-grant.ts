// Which grant a person means. Pure.
import { NumalignError } from '../../base/errors.js';

/** How many characters of an id are typed and shown at least. */
export const ID_PREFIX = 4;

interface Named {
  readonly uid: string;
  readonly name: string;
}

function describe({ uid, name }: Named): string {
  return name === uid ? uid : `${uid} (${name})`;
}

/**
 * The grant with this id; else the only one whose id begins with it (from 4 characters) or that has
 * it as its name.
 * @throws ERR_UNKNOWN_GRANT, listing what there is; ERR_INVALID_ARGUMENT where it may mean several
 */
export function findGrant<Grant extends Named>(
  grants: readonly Grant[],
  text: string,
  stateDir: string,
): Grant {
  const exact = grants.find((grant) => grant.uid === text);
  if (exact) return exact;
  const meant = grants.filter(
    ({ uid, name }) => name === text || (text.length >= ID_PREFIX && uid.startsWith(text)),
  );
  if (meant.length === 1) return meant[0]!;
  if (meant.length > 1) {
    throw new NumalignError(
      'ERR_INVALID_ARGUMENT',
      `"${text}" may mean ${meant.map(describe).join(' or ')}: give an id`,
      {
        value: text,
        valid: meant.map(({ uid }) => uid),
      },
    );
  }
  const valid = grants.map(({ uid }) => uid);
  const there = grants.length === 0 ? 'nothing is granted' : `there is ${grants.map(describe).join(', ')}`;
  throw new NumalignError('ERR_UNKNOWN_GRANT', `there is no grant "${text}" in ${stateDir}: ${there}`, {
    value: text,
    valid,
  });
}
