// Which grant a person means. Pure.
import { NumalignError } from '../../base/errors.js';

/** How many characters of an id are typed and shown at least. */
export const ID_PREFIX = 4;

interface Named {
  readonly id: string;
  readonly name: string;
}

function describe({ id, name }: Named): string {
  return name === id ? id : `${id} (${name})`;
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
  const exact = grants.find((grant) => grant.id === text);
  if (exact) return exact;
  const meant = grants.filter(
    ({ id, name }) => name === text || (text.length >= ID_PREFIX && id.startsWith(text)),
  );
  if (meant.length === 1) return meant[0]!;
  if (meant.length > 1) {
    throw new NumalignError(
      'ERR_INVALID_ARGUMENT',
      `"${text}" may mean ${meant.map(describe).join(' or ')}: give an id`,
      {
        value: text,
        valid: meant.map(({ id }) => id),
      },
    );
  }
  const valid = grants.map(({ id }) => id);
  const there = grants.length === 0 ? 'nothing is granted' : `there is ${grants.map(describe).join(', ')}`;
  throw new NumalignError('ERR_UNKNOWN_GRANT', `there is no grant "${text}" in ${stateDir}: ${there}`, {
    value: text,
    valid,
  });
}
