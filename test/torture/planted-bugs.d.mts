import type { Edit } from '../support/planting.mjs';

export const BUGS: readonly (Edit & { readonly name: string; readonly also?: readonly Edit[] })[];
