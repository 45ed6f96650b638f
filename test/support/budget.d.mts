export const isLong: boolean;
export function budget<T extends number | string>(rounds: { readonly all: T; readonly usual: T }): T;

/** The first and another one by default, for the processes that each takes; `all` in a long run. */
export function firstAndAnother<T>(all: readonly T[]): readonly T[];
