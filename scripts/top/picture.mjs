// The picture of the README: what `numalign top` has printed in recording.txt, page by page.
import { readFileSync } from 'node:fs';
import { WIDTH } from './scene.mjs';

const LINE = 18;

/** Pages of the recording: the seconds since the first, and the lines. */
function pagesOf(recording) {
  const pages = recording
    .trim()
    .split(/^(?=\/run\/numalign, )/m)
    .map((page) => page.trim().split('\n'));
  const timeOf = ([title]) =>
    Date.parse(/, (\S+ \S+) UTC,|$/.exec(title)[1].replace(' ', 'T').concat('Z')) / 1000;
  return pages.map((lines) => ({ at: timeOf(lines) - timeOf(pages[0]), lines }));
}

const escaped = (text) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;');
const textsOf = (lines) =>
  lines
    .map((line, i) => (line === '' ? '' : `<text x="14" y="${24 + i * LINE}">${escaped(line)}</text>\n`))
    .join('');

/** As SVG; `still`: a line of the page that is shown without motion. */
export function topPicture({ title, still }) {
  const pages = pagesOf(readFileSync(new URL('recording.txt', import.meta.url), 'utf8'));
  const every = pages[1].at;
  const seconds = pages.at(-1).at + every;
  const stillPage = pages.findIndex(({ lines }) => lines.some((line) => line.includes(still)));
  const frames = pages.map(({ at, lines }, i) => {
    const name = i === stillPage ? 'frame still' : 'frame';
    return `<g class="${name}" style="animation-delay:${at}s">\n${textsOf(lines)}</g>\n`;
  });
  const width = WIDTH * 8 + 28;
  const height = Math.max(...pages.map(({ lines }) => lines.length)) * LINE + 20;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">
<title>${title}</title>
<style>rect{fill:#f6f8fa}text{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#12161b;white-space:pre}
.frame{opacity:0;animation:show ${seconds}s step-end infinite}
@keyframes show{0%{opacity:1}${((100 * every) / seconds).toFixed(3)}%{opacity:0}}
@media (prefers-reduced-motion:reduce){.frame{animation:none}.still{opacity:1}}
@media (prefers-color-scheme:dark){rect{fill:#0d1117}text{fill:#f0f3f6}}</style>
<rect width="${width}" height="${height}" rx="6"/>
${frames.join('')}</svg>
`;
}
