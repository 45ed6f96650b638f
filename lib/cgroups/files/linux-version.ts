// The version of the running kernel.
import { release } from 'node:os';

export function isLinuxFrom(major: number, minor: number): boolean {
  const [nowMajor = 0, nowMinor = 0] = release().split('.').map(Number);
  return nowMajor > major || (nowMajor === major && nowMinor >= minor);
}
