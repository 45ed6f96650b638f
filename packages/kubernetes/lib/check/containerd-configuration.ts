// ContainerdConfiguration: what containerd's configuration says about NRI. Pure.

const NRI = 'io.containerd.nri.v1.nri';

/**
 * Whether a configuration of containerd (TOML) disables NRI. Null if it does not say: then NRI is
 * off in containerd 1.7, and on in 2.0 and newer.
 */
export function isNriDisabled(text: string): boolean | null {
  let isOfNri = false;
  let found: boolean | null = null;
  for (const line of text.split('\n')) {
    const words = line.replace(/#.*/, '').trim();
    const table = /^\[\s*plugins\s*\.\s*(["'])(.*)\1\s*\]$/.exec(words);
    if (words.startsWith('[')) isOfNri = table?.[2] === NRI;
    const value = isOfNri ? /^disable\s*=\s*(true|false)$/.exec(words)?.[1] : undefined;
    if (value) found = value === 'true';
  }
  return found;
}
