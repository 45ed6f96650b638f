// Installs the shells, and the readers of man pages.
import { spawnSync } from 'node:child_process';
// @ts-expect-error: a script without types
import { aptCommand, installPackages } from '../../../../scripts/steps.mjs';

// Debian's images for containers leave man pages out, but not man(1).
const PACKAGES = ['zsh', 'fish', 'mandoc', 'man-db', 'python3'].map((name) => ({
  name,
  present: () => spawnSync(name === 'man-db' ? 'man' : name, ['--version']).error === undefined,
}));

export default function setup(): void {
  const missing: string[] = installPackages(PACKAGES);
  if (missing.length > 0) throw new Error(`please install what is missing, as root: ${aptCommand(missing)}`);
}
