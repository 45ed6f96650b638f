// needs: nothing
// The table of the options of placement, and what follows from each row.
import { describe, expect, it } from 'vitest';
import { optionRows } from '../../lib/input/option-table.js';
import { DEFAULT_PLACEMENT, parsePlacement } from '../../lib/input/placement.js';
import { PLACEMENT_OPTIONS } from '../../lib/input/placement-options.js';
import { thrownBy } from '../support/error-of.js';

/** An option as it is given: within its group, if it has one. */
function given(name: string, value: unknown): object {
  const entries = Object.entries(PLACEMENT_OPTIONS);
  const [group] = entries.find(([, entry]) => 'rows' in entry && name in entry.rows) ?? [];
  return group === undefined ? { [name]: value } : { [group]: { [name]: value } };
}

describe.each(optionRows(PLACEMENT_OPTIONS))('the option %s', (name, { field, check, default: usual }) => {
  const other = check.values?.find((value) => value !== usual) ?? (usual === false ? true : 8);

  it('changes its field of a placement, and no other', () => {
    const placement = parsePlacement(given(name, other));
    expect(placement).toEqual({ ...DEFAULT_PLACEMENT, [field]: check(other, name) });
    expect(placement).not.toEqual(DEFAULT_PLACEMENT);
  });

  it('is as before if it is undefined', () => {
    expect(parsePlacement({ [name]: undefined })).toBe(DEFAULT_PLACEMENT);
  });

  it('is refused with another value, by its name', () => {
    const { code, details } = thrownBy(() => parsePlacement(given(name, 'zzz'))) ?? {};
    expect([code, details?.option]).toEqual(['ERR_INVALID_OPTION', name]);
  });
});
