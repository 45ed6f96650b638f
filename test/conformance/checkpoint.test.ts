// needs: nothing
import { describe, expect, it } from 'vitest';
import * as numalign from '../support/package.js';
import type { Case, Numalign } from './case.js';
import { contextOf } from './read.js';
import { readCases } from './replay.js';
import { outcomeOf, vectors } from './support/cases.js';

const { cases, kind, path } = readCases(vectors('checkpoint'))!;
const context = contextOf(path, numalign);

describe('the recorded cases of checkpoint', () => {
  it('fail if any of their answers is altered', async () => {
    const notNoticed: string[] = [];
    for (const { error, loaded, state, ...asked } of cases) {
      const wrong: object[] = [{ error: 'refused' }];
      if (error !== undefined) wrong.splice(0, 1, { loaded: { entries: {} } });
      if (loaded) wrong.push({ loaded: { ...loaded, entries: { other: {} } } });
      if (state) wrong.push({ state: { ...state, policyName: 'other' } }, { state, text: `${asked.text} ` });
      for (const answer of wrong) {
        const { outcome } = await kind.run({ ...asked, ...answer } as unknown as Case, context);
        // A file without a checksum, or with an unknown member, is refused here in any case.
        const isRefused =
          /"(extra|x)":/.test(String(asked.text)) || (asked.variant === 'checksumZero' && 'error' in answer);
        if (outcome !== 'failed' && !isRefused) notNoticed.push(`${asked.id} ${Object.keys(answer)}`);
      }
    }
    expect(notNoticed).toEqual([]);
  });
});

describe('a checkpoint case of a CPU file without a checksum', () => {
  const text = '{"policyName":"static","defaultCpuSet":"0-3","entries":{"u":{"c":"4"}},"checksum":0}';
  const loaded = { defaultCpuSet: '0-3', entries: { u: { c: '4' } } };
  const vector = { kind: 'cpu', variant: 'checksumZero', policy: 'static', text, loaded };
  const parsing = (change: Partial<numalign.CpuManagerFormatOptions>, result = {}): Numalign => ({
    ...numalign,
    parseCpuManagerState: (file, options) => ({
      ...numalign.parseCpuManagerState(file, { ...options, ...change }),
      ...result,
    }),
  });

  it('counts as D10 if it is refused, and read as unverified on request', async () => {
    expect(await outcomeOf(vector)).toBe('D10');
    expect(await outcomeOf({ ...vector, text: text.replace(',"checksum":0', '') })).toBe('D10');
  });

  it('fails if it is trusted by default, never read, read wrongly or called verified', async () => {
    expect(await outcomeOf(vector, parsing({ allowUnverified: true }))).toBe('failed');
    expect(await outcomeOf(vector, parsing({ allowUnverified: false }))).toBe('failed');
    expect(await outcomeOf(vector, parsing({}, { entries: new Map() }))).toBe('failed');
    expect(await outcomeOf(vector, parsing({}, { verified: true }))).toBe('failed');
  });

  it('of the memory manager is damaged in any case', async () => {
    const memory = '{"policyName":"None","machineState":{},"checksum":0}';
    const asked = { kind: 'memory', variant: 'checksumZero', policy: 'None', text: memory };
    expect(await outcomeOf({ ...asked, error: 'corrupted' })).toBe('passed');
    expect(await outcomeOf({ ...asked, loaded: { machineState: {}, entries: {} } })).toBe('failed');
  });
});
