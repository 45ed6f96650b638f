// ClaimNames: how the parts of a ResourceClaim are named on numalign's record, and in the environment
// of the containers that use them. Pure.
import { NodeError } from '../base/errors.js';

/** The beginning of the names of variables, one for each part of a claim. */
const VARIABLE = 'NUMALIGN_CLAIM_';
const UID = /^claim\.([A-Za-z0-9-]{1,63})\.(\d{1,2})$/;
const CLAIM_UID = /^[A-Za-z0-9-]{1,63}$/;
// Of a grant.
const LONGEST_NAME = 253;

/** Whether it can be the uid of a claim: it is in the names of files. */
export const isClaimUid = (uid: string): boolean => CLAIM_UID.test(uid);

/** The uid of the grant of a claim's part. */
export const claimGrantUid = (claimUid: string, part: number): string => `claim.${claimUid}.${part}`;

/** The uid of the claim that a grant is of; undefined: it is of none. */
export const claimOfGrant = (uid: string): string | undefined => UID.exec(uid)?.[1];

/** The name of its grant, for people. */
export const claimGrantName = (
  { namespace, name }: { readonly namespace: string; readonly name: string },
  request: string,
): string => `claim:${namespace}/${name}/${request}`.slice(0, LONGEST_NAME);

/** The claim that the name of a grant stands for; undefined: it is not known whole. */
export function claimNameIn(grantName: string): { namespace: string; name: string } | undefined {
  const [, namespace, name] = /^claim:([^/]+)\/([^/]+)\/[^/]+/.exec(grantName) ?? [];
  const isWhole = namespace !== undefined && name !== undefined && grantName.length < LONGEST_NAME;
  return isWhole ? { namespace, name } : undefined;
}

/** The entry of the environment by which a container has a part of a claim: each has another name. */
export function claimVariable(grantUid: string): string {
  const [, claim = '', part] = UID.exec(grantUid)!;
  return `${VARIABLE}${claim.replaceAll('-', '').toUpperCase()}_${part}=${grantUid}`;
}

/**
 * The grants of claims in the environment of a container, each entry `NAME=value`.
 * @throws ERR_CLAIM_ENVIRONMENT if it names something else
 */
export function claimGrantsIn(environment: readonly string[]): readonly string[] {
  const entries = environment.filter((entry) => entry.startsWith(VARIABLE));
  const uids = new Set(entries.map((entry) => entry.slice(entry.indexOf('=') + 1)));
  for (const uid of uids) {
    if (UID.test(uid)) continue;
    throw new NodeError('ERR_CLAIM_ENVIRONMENT', `the environment names ${JSON.stringify(uid)} as a claim`, {
      value: uid,
      valid: 'what the DRA driver sets',
    });
  }
  return [...uids].sort();
}
