// Facts: the members of a grant that its plain object has.

/** In the order of the plain object. */
export const FACTS = [
  'uid',
  'name',
  'cpus',
  'mixed',
  'elastic',
  'parts',
  'held',
  'upcoming',
  'numaNodes',
  'memory',
  'memoryNodes',
  'devices',
  'movable',
  'isIsolated',
  'enforcement',
  'memoryEnforcement',
  'quiet',
] as const;

/** Some members of an object as a plain object. */
export const factsOf = <T, Name extends keyof T>(of: T, names: readonly Name[]): Pick<T, Name> =>
  Object.fromEntries(names.map((name) => [name, of[name]])) as Pick<T, Name>;
