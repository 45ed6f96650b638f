// The picture of the README: what `numalign top` has printed in recording.txt, page by page.
import { readFileSync } from 'node:fs';
import { WIDTH } from './scene.mjs';

const LINE = 18;

const PAGE_SECONDS = 2;

// The pool, the grants and the foreign tasks of a page, without figures.
const sightOf = (lines) => [lines[1], ...lines.slice(3).map((line) => /^\S*/.exec(line)[0])].join();

/** The lines of the pages that are shown: the last of those in a row that differ in figures alone. */
function shownPages(recording) {
  const pages = recording
    .trim()
    .split(/^(?=\/run\/numalign, )/m)
    .map((page) => page.trim().split('\n'));
  const sights = pages.map(sightOf);
  return pages.filter((_, i) => sights[i] !== sights[i + 1]);
}

const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
const textsOf = (lines) =>
  lines
    .map((line, i) => (line === '' ? '' : `<text x="14" y="${24 + i * LINE}">${escaped(line)}</text>\n`))
    .join('');

/** As SVG; `still`: a line of the page that is shown without motion. */
export function topPicture({ title, still }) {
  const pages = shownPages(readFileSync(new URL('recording.txt', import.meta.url), 'utf8'));
  const seconds = pages.length * PAGE_SECONDS;
  const stillPage = pages.findIndex((lines) => lines.some((line) => line.includes(still)));
  const frames = pages.map((lines, i) => {
    const name = i === stillPage ? 'frame still' : 'frame';
    return `<g class="${name}" style="animation-delay:${i * PAGE_SECONDS}s">\n${textsOf(lines)}</g>\n`;
  });
  const width = WIDTH * 8 + 28;
  const height = Math.max(...pages.map(({ length }) => length)) * LINE + 20;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${title}</title>
<style>rect{fill:#f6f8fa}text{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#12161b;white-space:pre}
.frame{opacity:0;animation:show ${seconds}s step-end infinite}
@keyframes show{0%{opacity:1}${(100 / pages.length).toFixed(3)}%{opacity:0}}
@media (prefers-reduced-motion:reduce){.frame{animation:none}.still{opacity:1}}
@media (prefers-color-scheme:dark){rect{fill:#0d1117}text{fill:#f0f3f6}}</style>
<rect width="${width}" height="${height}" rx="6"/>
${frames.join('')}</svg>
`;
}
