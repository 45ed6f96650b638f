// Loads the addon and types its surface.
import { join } from 'node:path';
import { NumalignError, unlessThrown } from './errors.js';
import { loadAddon } from './load-addon.js';
import type { Native } from './native-surface.js';
import { type WiredFunctions, wired } from './wire.js';

// An import would load the streams of Node at the import of numalign.
const { readFileSync } = process.getBuiltinModule('node:fs');

type Addon = Omit<Native, keyof WiredFunctions> & WiredFunctions;

function load(): Addon {
  if (process.platform !== 'linux')
    throw notLoaded(`numalign needs system calls of Linux, which ${process.platform} does not have`);
  // Bundlers remove `import.meta` from ES modules; in dist/ it is `__filename`.
  if (typeof import.meta.filename !== 'string') throw notLoaded(bundledText('another file'));
  const file = import.meta.filename;
  // From a file of dist/ or, in tests, from this one.
  const packageFolder = join(file, file.endsWith('.ts') ? '../../..' : '../..');
  try {
    return loadAddon(packageFolder) as Addon;
  } catch (cause) {
    throw notLoaded(whyNotLoaded(file, packageFolder, cause as NodeJS.ErrnoException), cause);
  }
}

function notLoaded(message: string, cause?: unknown): NumalignError {
  return new NumalignError('ERR_ADDON_MISSING', message, { cause });
}

function bundledText(file: string): string {
  return `numalign was bundled into ${file}, but its native addon cannot be: have the bundler leave numalign where it is installed (esbuild --external:numalign; \`external: [/^numalign/]\` of Rollup, rolldown and Vite; \`externals\` of webpack; ncc --external numalign)`;
}

function isNumalign(folder: string): boolean {
  return unlessThrown(
    () => JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')).name === 'numalign',
    false,
  );
}

function whyNotLoaded(file: string, folder: string, { code, message }: NodeJS.ErrnoException): string {
  const [reason] = message.split('\n');
  if (code === 'ERR_DLOPEN_DISABLED') {
    const isPermissionModel = (process as { permission?: unknown }).permission !== undefined;
    return `Node may not load the native addon of numalign: start it ${isPermissionModel ? 'with --allow-addons' : 'without --no-addons'}`;
  }
  // Under the permission model package.json may be closed too.
  if (code === 'ERR_ACCESS_DENIED')
    return `Node may not read the native addon of numalign: start it with --allow-fs-read=${folder}* as well`;
  if (!isNumalign(folder)) return bundledText(file);
  if (code === 'MODULE_NOT_FOUND')
    return `the native addon of numalign cannot be looked for: ${reason}; install numalign again, with its dependencies`;
  if (code === 'ERR_DLOPEN_FAILED')
    return `the native addon of numalign cannot be loaded: ${reason}; run \`npm rebuild numalign\` (${NEEDS})`;
  return `the native addon of numalign is not built for this machine; run \`npm rebuild numalign\` (${NEEDS})`;
}

const NEEDS = 'it needs: apt-get install libhwloc-dev pkg-config g++ make python3';

// The addon knows one wire, and an environment has one addon, even if it evaluates this module
// twice.
const WIRED = Symbol.for('numalign.wired');

// Its other functions are those of its prototype: V8 copies an object of sixty in as many steps.
function withWire(addon: Addon & { [WIRED]?: Native }): Native {
  addon[WIRED] ??= Object.setPrototypeOf(wired(addon), addon) as Native;
  return addon[WIRED];
}

/** The addon, or functions that throw why it is missing. */
function open(): { native: Native; addonError: NumalignError | null } {
  try {
    const addon = withWire(load());
    addon.setErrorClass(NumalignError);
    return { native: addon, addonError: null };
  } catch (error) {
    const { message, cause } = error as NumalignError;
    const refuse = () => {
      throw notLoaded(message, cause);
    };
    return { native: new Proxy({} as Native, { get: () => refuse }), addonError: error as NumalignError };
  }
}

const addon = open();
/** The addon. Functions throw NumalignError, or TypeError if an argument has the wrong shape. */
export const native: Native = addon.native;
/** ERR_ADDON_MISSING if the functions of {@link native} cannot be called; else null. */
export const addonError: NumalignError | null = addon.addonError;
