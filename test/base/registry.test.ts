// needs: agents
// Values in memory for an owner, and weakly held objects by name.
import { describe, expect, it } from 'vitest';
import { Registry } from '../../lib/base/collections/registry.js';
import { WeakValues } from '../../lib/base/collections/weak-values.js';

describe('a registry', () => {
  it('makes each thing once, for its owner', () => {
    const registry = new Registry('owner');
    const make = (owner: string) => ({ owner });
    expect(registry.of(make)).toEqual({ owner: 'owner' });
    expect(registry.of(make)).toBe(registry.of(make));
  });

  it('makes no value a second time, even if it is undefined', () => {
    let made = 0;
    const registry = new Registry(undefined);
    const make = () => void made++;
    registry.of(make);
    registry.of(make);
    expect(made).toBe(1);
  });

  it('separates the values of different functions and owners', () => {
    const registry = new Registry(undefined);
    const [one, two] = [() => new Set(), () => new Set()];
    expect(registry.of(one)).not.toBe(registry.of(two));
    expect(registry.of(one)).not.toBe(new Registry(undefined).of(one));
  });

  it('is empty while its maps and sets are', () => {
    const registry = new Registry(undefined);
    const [map, set, other] = [() => new Map<string, string>(), () => new Set<string>(), () => ({})];
    registry.of(other);
    registry.of(map);
    expect(registry.isEmpty).toBe(true);
    registry.of(set).add('a');
    expect(registry.isEmpty).toBe(false);
    registry.of(set).clear();
    expect(registry.isEmpty).toBe(true);
  });
});

describe('weak values', () => {
  it('are found by their names while they are referenced', () => {
    const values = new WeakValues<object>();
    const value = {};
    values.add('a', value);
    expect(values.get('a')).toBe(value);
    expect(values.get('b')).toBeUndefined();
  });

  it('are replaced by others with the same name', () => {
    const values = new WeakValues<object>();
    const [first, second] = [{}, {}];
    values.add('a', first);
    values.add('a', second);
    expect(values.get('a')).toBe(second);
  });
});
