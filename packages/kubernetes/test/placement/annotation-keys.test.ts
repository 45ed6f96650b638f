import { describe, expect, it } from 'vitest';
import { checkAnnotationKeys } from '../../lib/placement/annotations.js';
import { thrownBy } from '../support/nri-objects.js';

const annotated = (...names: string[]) => ({
  annotations: Object.fromEntries(names.map((name) => [name, '1'])),
});

describe('Annotations of numalign', () => {
  it('are known by their keys, also for one container of a pod', () => {
    checkAnnotationKeys(
      annotated('numalign.io/cpu', 'numalign.io/core-kind.main', 'numalign.io/movable', 'example.com/cpus'),
      annotated('numalign.io/choice', 'numalign.io/memory'),
    );
  });

  it.each([
    ['numalign.io/cpus', 'numalign.io/cpu'],
    ['numalign.io/corekind.main', 'numalign.io/core-kind'],
    ['numalign.io/Memory', 'numalign.io/memory'],
  ])('are refused if they are misspelled, with the one that was meant: %s', (name, meant) => {
    const error = thrownBy(() => checkAnnotationKeys(annotated(), annotated(name))) as Error;
    expect(error).toMatchObject({ code: 'ERR_INVALID_ANNOTATION', details: { value: name } });
    expect(error.message).toBe(`there is no annotation ${name}; did you mean ${meant}?`);
  });

  it('are refused without a guess if nothing is similar', () => {
    const error = thrownBy(() => checkAnnotationKeys(annotated('numalign.io/frobnicate'))) as Error;
    expect(error.message).toBe('there is no annotation numalign.io/frobnicate');
  });
});
