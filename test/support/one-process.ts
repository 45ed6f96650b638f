// For the files that share a process: a pin that outlives its file would be there in the next one.
import { afterAll, expect } from 'vitest';
import { removeCopy } from './strangers.js';
// @ts-expect-error without declarations
import { whyNotPlaceable } from './usable-cpus.mjs';

const before: string | undefined = whyNotPlaceable();

afterAll(() => expect(whyNotPlaceable(), 'this file belongs to a project with `isolate`').toBe(before));

// The next file makes its own.
afterAll(removeCopy);
