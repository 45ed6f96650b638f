// Before each file of the projects `machine` and `visits`, whose tests move threads between CPUs:
// they have nothing to say where there is one, or only a part of the machine's may be used.
import { beforeEach } from 'vitest';
// @ts-expect-error without declarations
import { whyNotPlaceable } from './usable-cpus.mjs';

const why: string | undefined = whyNotPlaceable();

beforeEach(({ skip }) => skip(why !== undefined, why));
