// Packages of which a program installs those whose metrics it wants.
import { createRequire } from 'node:module';
import { NumalignError } from 'numalign';

/** @throws ERR_OPTIONAL_DEPENDENCY, with this message, where it is not installed */
export function loadOptional<Package>(name: string, message: string): Package {
  try {
    return createRequire(import.meta.url)(name) as Package;
  } catch (cause) {
    throw new NumalignError('ERR_OPTIONAL_DEPENDENCY', message, { value: name, cause });
  }
}
