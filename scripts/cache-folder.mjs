// The folder with downloads, for all clones.
import { homedir } from 'node:os';
import { join } from 'node:path';

export const cacheFolder = (name) =>
  join(process.env.XDG_CACHE_HOME || join(homedir() || '/root', '.cache'), name);

/** What prebuild.mjs compiles with. */
export const PREBUILD_CACHE = cacheFolder('numalign-prebuild');
/** The root folder of a Debian 11, by its name. */
export const PREBUILD_SYSTEM = join(PREBUILD_CACHE, 'bullseye');
