// The library numalign that the command finds: of the release that the command is built for, or none
// of the command's modules can be loaded safely.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const require = createRequire(import.meta.filename);

/** Why the command cannot run, for people. */
export interface LibraryRefusal {
  readonly code: 'ERR_LIBRARY_MISSING' | 'ERR_LIBRARY_VERSION';
  readonly message: string;
}

const releaseOf = (version: string) => /^\d+\.\d+/.exec(version)?.[0];

/** `own`: the command's version; `found`: that of the library, undefined without one. Pure. */
export function refusalOf(own: string, found: string | undefined): LibraryRefusal | undefined {
  const release = releaseOf(own);
  const remedy = `npm install @numalign/cli@${release} numalign@${release}, with --global for a global command`;
  if (found === undefined)
    return { code: 'ERR_LIBRARY_MISSING', message: `the package numalign is not installed: ${remedy}` };
  if (releaseOf(found) === release) return undefined;
  const message = `this is @numalign/cli ${own}, which cannot use numalign ${found}: ${remedy}`;
  return { code: 'ERR_LIBRARY_VERSION', message };
}

function versionIn(path: string): string | undefined {
  try {
    return (require(path) as { version: string }).version;
  } catch {
    return undefined;
  }
}

/** The command's own version. */
export const version = versionIn('../package.json')!;

function folderOfLibrary(): string | undefined {
  // Yarn's Plug'n'Play looks nowhere else.
  if (process.versions.pnp !== undefined) return undefined;
  try {
    const folders = require.resolve.paths('numalign')?.map((each) => resolve(each, 'numalign'));
    return folders?.find((each) => existsSync(`${each}/package.json`));
  } catch {
    // Node's permission model may hide folders.
    return undefined;
  }
}

/** Its folder where Node looks for it; undefined if its files are elsewhere, such as in an archive. */
const folder = folderOfLibrary();

/** Of this command, and the library that it finds. */
export const refusalHere = (): LibraryRefusal | undefined =>
  refusalOf(version, versionIn(`${folder ?? 'numalign'}/package.json`));

/** Loads files of the command as V8 has compiled them, if the library can. */
export function loadCompiled(files: readonly string[]): void {
  if (folder === undefined) return;
  try {
    require(`${folder}/dist/compiled-code.cjs`).loadCompiled(require.cache[import.meta.filename], files);
  } catch {
    // require() loads them, or says why not.
  }
}
