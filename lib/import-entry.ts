// How an entry that is imported finds its CommonJS module. V8 compiles ES modules at each start, so this is
// little: it loads compiled-code.ts, which loads all else, from compiled code.

import { addonIn, compiledFolder, EPILOGUE, isUnusual, Modules, PROLOGUE } from './code-folder.js';
import type * as loader from './compiled-code.js';

const MOST_BYTES = 2 ** 16;

function loadLoader(folder: string, filename: string): typeof loader | undefined {
  const room = Buffer.allocUnsafeSlow(MOST_BYTES);
  const found = addonIn(folder).readModule(filename, compiledFolder(folder), room, PROLOGUE, EPILOGUE);
  if (!found) return undefined;
  const { Script } = process.getBuiltinModule('node:vm');
  const cachedData = room.subarray(0, found.size);
  const script = new Script(found.text, { filename, columnOffset: -PROLOGUE.length, cachedData });
  const module = Object.assign(new Modules(filename), { filename, loaded: true });
  script.runInThisContext()(module.exports, undefined, module, filename, `${folder}/dist`);
  Modules._cache[filename] = module;
  return module.exports;
}

function loaderOf(folder: string): typeof loader | undefined {
  const filename = `${folder}/dist/compiled-code.cjs`;
  try {
    const known = Modules._cache[filename];
    if (known) return known.loaded ? known.exports : undefined;
    return isUnusual() ? undefined : loadLoader(folder, filename);
  } catch {
    return undefined;
  }
}

/**
 * Returns what an entry of the package in `folder` exports. It is the module that require() finds, and
 * that Node loads where no compiled code is.
 */
export function importEntry(folder: string, file: string): unknown {
  return (loaderOf(folder)?.loadEntry ?? Modules.createRequire(file))(file);
}
