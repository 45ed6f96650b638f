// Who counts as the holder of a grant where not everything can be seen.
import { describe, expect, it } from 'vitest';
import type { OwnerRecord } from '../../lib/account/pod-assignment.js';
import { isHolder } from '../../lib/enforcement/members/descent.js';
import { child } from './members.js';

const NOBODY = 65_534;
const ownerWith = (pid: number): OwnerRecord => ({
  kind: 'process',
  uuid: '00000000-0000-4000-8000-000000000000',
  pid,
  command: null,
  cgroup: null,
  unknown: {},
});

describe('the holder of a grant', () => {
  it('is nobody who does not have its lock open, though he has the owner’s pid', () => {
    const { pid } = child('sleep', ['1000']);
    expect(isHolder(ownerWith(pid!), pid!)).toBe(false);
  });

  it.runIf(process.getuid?.() === 0)(
    'is who has the owner’s pid where its files may not be looked at',
    () => {
      const { pid } = child('sleep', ['1000']);
      process.seteuid!(NOBODY);
      try {
        expect(isHolder(ownerWith(pid!), pid!)).toBe(true);
        expect(isHolder(ownerWith(pid! + 1), pid!)).toBe(false);
      } finally {
        process.seteuid!(0);
      }
    },
  );
});
