// The script of the page, for browsers as they are: no build step touches it. It follows the events,
// and changes what differs, so that focus, open details and scroll positions stay.
export const SCRIPT = `'use strict';
const following = document.querySelector('.following');
const status = following.querySelector('[role=status]');
const clock = following.querySelector('time');
const sheet = document.querySelector('link[rel=stylesheet]');
let source;

function say(text, name) {
  if (status.textContent !== text) status.textContent = text;
  following.className = 'following ' + name;
}

const keyOf = (node) => node.dataset && node.dataset.key;

function update(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeName !== to.nodeName) return void from.replaceWith(to);
  if (from.nodeType !== Node.ELEMENT_NODE) {
    from.data = to.data;
    return;
  }
  for (const { name } of [...from.attributes])
    if (name !== 'open' && !to.hasAttribute(name)) from.removeAttribute(name);
  for (const { name, value } of to.attributes)
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  updateChildren(from, to);
}

function updateChildren(from, to) {
  const wanted = new Set([...to.children].map(keyOf));
  const known = new Map();
  for (const child of [...from.children]) {
    const key = keyOf(child);
    if (key === undefined) continue;
    if (wanted.has(key)) known.set(key, child);
    else child.remove();
  }
  let here = from.firstChild;
  for (const child of [...to.childNodes]) {
    const key = keyOf(child);
    const same = key === undefined ? (here && keyOf(here) === undefined ? here : undefined) : known.get(key);
    if (same === undefined) {
      from.insertBefore(child, here);
      continue;
    }
    if (same === here) here = here.nextSibling;
    else from.insertBefore(same, here);
    update(same, child);
  }
  while (here) {
    const next = here.nextSibling;
    here.remove();
    here = next;
  }
}

function show({ time, colors, sections }) {
  const url = 'page.css?colors=' + colors;
  if (sheet.getAttribute('href') !== url) sheet.setAttribute('href', url);
  for (const [name, html] of Object.entries(sections)) {
    const template = document.createElement('template');
    template.innerHTML = html;
    updateChildren(document.querySelector('#' + name + ' .content'), template.content);
  }
  clock.dateTime = time;
  clock.textContent = new Date(time).toLocaleTimeString();
}

function follow() {
  if (source || document.hidden) return;
  source = new EventSource('events');
  source.onmessage = ({ data }) => {
    show(JSON.parse(data));
    say('Live', 'live');
  };
  source.onerror = () => {
    if (source.readyState !== EventSource.CLOSED) return say('Connection lost: trying again', 'lost');
    // The server has refused: too many pages are open, or it is another one.
    source = undefined;
    say('Not following: the server refuses it at present', 'lost');
    setTimeout(follow, 10000);
  };
}

// A page that is not seen costs the machine nothing.
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) return follow();
  if (source) source.close();
  source = undefined;
  say('Paused', '');
});
follow();
`;
