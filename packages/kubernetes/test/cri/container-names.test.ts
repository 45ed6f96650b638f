import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chooseContainer, type NamedContainer } from '../../lib/cri/container-names.js';

const container = (id: string, name: string, pod = 'web', namespace = 'default'): NamedContainer => ({
  ...{ id, name, pod, namespace },
});
const ALL = [
  container('aa11', 'nginx'),
  container('aa22', 'proxy'),
  container('bb33', 'nginx', 'api'),
  container('bb44', 'nginx', 'web', 'shop'),
];

describe('A container is meant by', () => {
  it.each([
    ['its id', 'aa11', 'aa11'],
    ['the first characters of its id', 'aa2', 'aa22'],
    ['a name that no other has', 'proxy', 'aa22'],
    ['the names of its pod and itself', 'api/nginx', 'bb33'],
    ['its full name', 'shop/web/nginx', 'bb44'],
  ])('%s', (_, text, id) => {
    expect(chooseContainer(ALL, text).id).toBe(id);
  });

  it('its id, if that is the name of another', () => {
    expect(chooseContainer([container('x', 'y'), container('y', 'z')], 'y').id).toBe('y');
  });
});

describe('No container is meant', () => {
  it.each(['nginx', 'web/nginx', 'aa', 'b'])('by %s, which is ambiguous', (text) => {
    const meant = ALL.filter(
      ({ id, name, pod }) => name === text || `${pod}/${name}` === text || id.startsWith(text),
    );
    expect(() => chooseContainer(ALL, text)).toThrow(
      expect.objectContaining({
        code: 'ERR_CONTAINER_AMBIGUOUS',
        details: { value: text, valid: meant.map(({ id }) => id) },
      }),
    );
  });

  it.each(['', 'cc', 'web', 'web/', '/nginx', 'nginx/web', 'x/default/web/nginx', 'blog/web/nginx'])(
    'by "%s"',
    (text) => {
      expect(() => chooseContainer(ALL, text)).toThrow(
        expect.objectContaining({
          code: 'ERR_CONTAINER_UNKNOWN',
          message: expect.stringContaining('default/web/proxy (aa22)'),
        }),
      );
    },
  );

  it('if none runs', () => {
    expect(() => chooseContainer([], 'nginx')).toThrow(/: none runs$/);
  });
});

describe('Whatever containers there are', () => {
  const word = fc.string({ unit: fc.constantFrom('a', 'b', '1'), minLength: 1, maxLength: 3 });
  const containers = fc.uniqueArray(fc.record({ id: word, name: word, pod: word, namespace: word }), {
    selector: ({ id }) => id,
    maxLength: 8,
  });
  const texts = fc.array(word, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));

  it('one is chosen only if it is the only match, or by its id', () => {
    fc.assert(
      fc.property(containers, texts, (all, text) => {
        const meant = all.filter(
          ({ id, name, pod, namespace }) =>
            [name, `${pod}/${name}`, `${namespace}/${pod}/${name}`].includes(text) || id.startsWith(text),
        );
        const exact = all.find(({ id }) => id === text);
        const expected = exact ?? (meant.length === 1 ? meant[0] : undefined);
        let chosen: NamedContainer | undefined;
        try {
          chosen = chooseContainer(all, text);
        } catch {
          // None, or several.
        }
        expect(chosen).toBe(expected);
      }),
    );
  });
});
