// Checks and freezes the owner of a grant.
import { isAbsolute } from 'node:path';
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { option } from '../values/option-values.js';

/** The owner of a grant, see {@link RequestOptions.owner}. */
export type RequestedOwner = 'process' | LastingOwner;

/** An owner that outlives the process that names it. */
export type LastingOwner = 'persistent' | { readonly cgroup: string };

const isAbsolutePath = (value: unknown): value is string => typeof value === 'string' && isAbsolute(value);

/** @throws ERR_INVALID_OPTION */
export function parseOwner(owner: unknown = 'process'): RequestedOwner {
  return owner === 'process'
    ? owner
    : parseLastingOwner(owner, "'process', 'persistent' or { cgroup: '/sys/fs/cgroup/…' }");
}

/**
 * An owner that outlives this process.
 * @throws ERR_INVALID_OPTION
 */
export function parseLastingOwner(
  owner: unknown,
  valid = "'persistent' or { cgroup: '/sys/fs/cgroup/…' }",
): LastingOwner {
  if (owner === 'persistent') return owner;
  if (typeof owner !== 'object' || owner === null) invalidOption('owner', owner, valid);
  const { cgroup } = checkOptions(owner, ['cgroup'], 'owner');
  return Object.freeze({
    cgroup: option.that(cgroup, 'owner.cgroup', isAbsolutePath, 'the absolute path of a cgroup’s folder'),
  });
}
