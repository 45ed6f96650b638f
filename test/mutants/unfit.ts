// Before each file of judges: tests that now and then fail beside the mutants' other load, and so
// would judge wrongly.
import { beforeEach } from 'vitest';

const UNFIT = ['goes on without the old process where that dies on the way'];

beforeEach(({ skip, task }) => skip(UNFIT.includes(task.name), 'unfit to judge mutants'));
