// The paths that the page answers.

const PATHS: readonly string[] = ['/', '/page.css', '/page.js', '/events'];

/** Whether a page answers this path, with any query. */
export const isPagePath = (url = '/'): boolean => PATHS.includes(url.split('?', 1)[0]!);
