// ContainerdConfiguration: what containerd's configuration says about NRI. Pure.

const NRI = 'io.containerd.nri.v1.nri';

/** The values of a key in NRI's table, or in a table below it. */
function valuesIn(text: string, subtable: string | undefined, key: string): string[] {
  let isOfTable = false;
  return text.split('\n').flatMap((line) => {
    const words = line.replace(/#.*/, '').trim();
    if (words.startsWith('[')) {
      const [, , path, below] =
        /^\[\s*plugins\s*\.\s*(["'])(.*?)\1\s*(?:\.\s*(\w+)\s*)?\]$/.exec(words) ?? [];
      isOfTable = path === NRI && below === subtable;
    }
    const [, name, value] = /^(\w+)\s*=\s*(.+)$/.exec(words) ?? [];
    return isOfTable && name === key && value !== undefined ? [value] : [];
  });
}

/**
 * Whether a configuration of containerd (TOML) disables NRI. Null if it does not say: then NRI is
 * off in containerd 1.7, and on in 2.0 and newer.
 */
export function isNriDisabled(text: string): boolean | null {
  const value = valuesIn(text, undefined, 'disable').findLast((each) => each === 'true' || each === 'false');
  return value === undefined ? null : value === 'true';
}

/** The plugins without which the default validator of NRI lets no container be created. */
export function requiredPlugins(text: string): string[] {
  const isEnabled = valuesIn(text, 'default_validator', 'enable').at(-1) === 'true';
  const list = isEnabled ? (valuesIn(text, 'default_validator', 'required_plugins').at(-1) ?? '') : '';
  return [...list.matchAll(/(["'])(.*?)\1/g)].map(([, , name]) => name!);
}
