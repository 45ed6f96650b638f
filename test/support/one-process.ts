// For the files that share a process: a pin that outlives its file would be there in the next one.
import { afterAll, expect } from 'vitest';
import { removeCopy } from './strangers.js';
// @ts-expect-error without declarations
import { whyNotPlaceable } from './usable-cpus.mjs';

const before: string | undefined = whyNotPlaceable();

afterAll(() => expect(whyNotPlaceable(), 'this file belongs to a project with `isolate`').toBe(before));

// What such a file has begun at most once is begun anew for the next one.
afterAll(removeCopy);
