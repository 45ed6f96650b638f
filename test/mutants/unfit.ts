// Before each file of judges: tests that sometimes fail beside the mutants' other load, and so
// would judge wrongly.
import { beforeEach } from 'vitest';

const UNFIT = ['continues without the old process if that dies on the way'];

beforeEach(({ skip, task }) => skip(UNFIT.includes(task.name), 'unfit to judge mutants'));
