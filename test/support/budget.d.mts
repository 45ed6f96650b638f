export const isLong: boolean;
export function budget<T extends number | string>(all: T, usual: T): T;
