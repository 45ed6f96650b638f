// @numalign/page: a live page of a machine and its grants, as a request handler for node:http.
import { ManagerView } from 'numalign';
import { invalidOption } from 'numalign/tools';
import { MachinePage } from './machine-page.js';
import type { PageOptions } from './options.js';

export type { MachinePage } from './machine-page.js';
export { type PageOptions, readPageToken } from './options.js';
export { isPagePath } from './serving/page-paths.js';

/**
 * Makes a page of the machine and its grants: `createServer(page.handler).listen(8080, '127.0.0.1')`.
 * It shows the state of the manager, and the rejections of the manager itself. While no page is
 * open, it looks at nothing; while one is, it listens to `change`.
 * @throws ERR_INVALID_OPTION
 */
export function machinePage(manager: ManagerView, options: PageOptions = {}): MachinePage {
  if (!(manager instanceof ManagerView)) invalidOption('manager', manager, 'a manager that openManager gave');
  return new MachinePage(manager, options);
}
