// Before each file of the projects `machine` and `visits`, whose tests move threads between CPUs:
// with one CPU, or only a part of the machine's, they prove nothing.
import { beforeEach } from 'vitest';
// @ts-expect-error without declarations
import { whyNotPlaceable } from './usable-cpus.mjs';

const why: string | undefined = whyNotPlaceable();

beforeEach(({ skip }) => skip(why !== undefined, why));
