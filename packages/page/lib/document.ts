// The page as one HTML document, which is whole without its script. Pure.
import type { Look, Section } from './look.js';
import { element, textElement } from './sections/html.js';

const TITLES = {
  picture: 'Machine',
  summary: 'State',
  grants: 'Grants',
  waiting: 'Waiting requests',
  rejections: 'Rejections',
} as const;

/** The host's name is its title. */
export function pageDocument(host: string, { time, colors, sections }: Look): string {
  const content = (name: Section) => element('div', { class: 'content' }, sections[name]);
  const titled = (name: keyof typeof TITLES) => {
    const title = textElement('h2', TITLES[name], { id: `${name}-title` });
    return element('section', { id: name, 'aria-labelledby': `${name}-title` }, title + content(name));
  };
  const clock = textElement('time', time.slice(11, 19), { datetime: time });
  const following = textElement('span', 'Still picture', { role: 'status' }) + clock;
  const title = `${host}: numalign`;
  const header = [
    textElement('h1', host),
    element('div', { id: 'machine' }, content('machine')),
    element('p', { class: 'following' }, following),
  ];
  const main = [
    element('div', { id: 'notices' }, content('notices')),
    ...(Object.keys(TITLES) as (keyof typeof TITLES)[]).map(titled),
  ];
  return [
    '<!doctype html>',
    '<html lang="en">',
    '<head>',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    textElement('title', title),
    `<link rel="stylesheet" href="page.css?colors=${colors}">`,
    '<script src="page.js" defer></script>',
    '</head>',
    '<body>',
    element('header', {}, header.join('')),
    element('main', {}, main.join('\n')),
    '</body>',
    '</html>',
    '',
  ].join('\n');
}
