// needs: nothing
import { describe, expect, it } from 'vitest';
import * as numalign from '../support/package.js';
import type { Case, Numalign } from './case.js';
import type { RecordedHint } from './hint.js';
import { contextOf } from './read.js';
import { readCases, replay } from './replay.js';
import { outcomeOf, vectors } from './support/cases.js';

type Merge = Numalign['mergeHints'];
type Hints = Iterable<numalign.TopologyHint>;

const file = readCases(vectors('hint-merge'))!;

/** The package with another mergeHints in it. */
const withMerge = (mergeHints: Merge): Numalign => ({ ...numalign, mergeHints });

/** The package with a mergeHints that gets other lists. */
function withLists(change: (hints: Hints | null) => Hints | null): Numalign {
  const changed = (provider: numalign.ProviderHints) =>
    provider &&
    Object.fromEntries(
      Object.entries(provider).map(([resource, hints]) => [resource, change(hints as Hints | null)]),
    );
  return withMerge((providers, options) => numalign.mergeHints(providers.map(changed), options));
}

const answering = (change: Partial<ReturnType<Merge>>) =>
  withMerge((...args) => ({ ...numalign.mergeHints(...args), ...change }));

/**
 * As the true package, on nodes numbered the other way round: of equals it takes the last where the
 * true one takes the first.
 */
function mirrored(): Numalign {
  const mirror = (nodes: Iterable<number>, last: number) =>
    Array.from(nodes, (node) => last - node).reverse();
  return withMerge((providers, options) => {
    const last = Math.max(...options.numaNodes);
    const turn = ({ nodes, preferred }: numalign.TopologyHint) => ({
      nodes: nodes && numalign.NodeSet.from(mirror(nodes, last)),
      preferred,
    });
    const turned = providers.map(
      (provider) =>
        provider &&
        Object.fromEntries(
          Object.entries(provider).map(([resource, hints]) => [resource, hints && Array.from(hints, turn)]),
        ),
    );
    const { distances, ...others } = options;
    const result = numalign.mergeHints(turned, {
      ...others,
      numaNodes: mirror(options.numaNodes, last),
      ...(distances && { distances: distances.map((row) => [...row].reverse()).reverse() }),
    });
    return { ...result, hint: turn(result.hint) };
  });
}

describe('the recorded cases of hint-merge', () => {
  it('fail if any of their answers is altered', async () => {
    const context = contextOf(file.path, numalign);
    const notNoticed: string[] = [];
    for (const vector of file.cases) {
      const { nodes, preferred } = vector.hint as RecordedHint;
      const altered: Record<string, unknown>[] = [
        { hint: { nodes, preferred: !preferred } },
        { hint: { nodes: nodes === null ? [0] : null, preferred } },
        { hint: { nodes: [...(nodes ?? []), 63], preferred } },
        { admit: !vector.admit },
      ];
      for (const answer of altered) {
        const { outcome } = await file.kind.run({ ...vector, ...answer } as Case, context);
        if (outcome !== 'failed') notNoticed.push(`${vector.id} ${JSON.stringify(answer)}`);
      }
    }
    expect(notNoticed).toEqual([]);
  });

  it.each<[string, Numalign]>([
    [
      'takes every hint for preferred',
      withLists((hints) => hints && Array.from(hints, (hint) => ({ ...hint, preferred: true }))),
    ],
    [
      'prefers none',
      withLists((hints) => hints && Array.from(hints, (hint) => ({ ...hint, preferred: false }))),
    ],
    [
      'takes an empty list for no preference',
      withLists((hints) => (hints && [...hints].length === 0 ? null : hints)),
    ],
    ['looks at the first hint of a list only', withLists((hints) => hints && [...hints].slice(0, 1))],
    ['breaks ties the other way', mirrored()],
    ['admits anything', answering({ admitted: true })],
    ['rejects anything', answering({ admitted: false })],
    ['is not exact', answering({ exact: false })],
    [
      'ignores the distances',
      withMerge((providers, options) => numalign.mergeHints(providers, { ...options, policyOptions: {} })),
    ],
    [
      'merges as under best-effort',
      withMerge((providers, options) =>
        numalign.mergeHints(providers, { ...options, policy: 'best-effort' }),
      ),
    ],
    [
      'forgets the last provider',
      withMerge((providers, options) => numalign.mergeHints(providers.slice(0, -1), options)),
    ],
  ])('fail with a package that %s', async (_, api) => {
    const { failures } = await replay(file, api, undefined, 21);
    expect(failures.length).toBeGreaterThan(20);
  });
});

describe('a hint-merge case', () => {
  const vector = { numaNodes: [0, 1], distances: null, policy: 'restricted', preferClosest: false };
  const providers = [{ cpu: [{ nodes: [1], preferred: true }] }, null, {}, { gpu: null }];
  const hint = { nodes: [1], preferred: true };

  it('passes with the recorded hint and admission', async () => {
    expect(await outcomeOf({ ...vector, providers, hint, admit: true })).toBe('passed');
    expect(await outcomeOf({ ...vector, providers, hint, admit: false })).toBe('failed');
    expect(
      await outcomeOf({ ...vector, providers, hint: { nodes: [0], preferred: true }, admit: true }),
    ).toBe('failed');
  });

  it('fails where nothing is recorded', async () => {
    expect(await outcomeOf({ ...vector, providers })).toBe('failed');
  });
});
