export const isLong: boolean;
export function budget(all: number, usual: number): number;
