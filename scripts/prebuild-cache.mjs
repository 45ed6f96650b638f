// Where prebuild.mjs keeps what it compiles with.
import { homedir } from 'node:os';
import { join } from 'node:path';

export const PREBUILD_CACHE = join(
  process.env.XDG_CACHE_HOME || join(homedir() || '/root', '.cache'),
  'numalign-prebuild',
);
/** The root folder of a Debian 11, by its name. */
export const PREBUILD_SYSTEM = join(PREBUILD_CACHE, 'bullseye');
