// SVG as text. Pure.
import { printable } from '../terminal/text.js';

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text from elsewhere as XML takes it. */
export function escaped(text: string): string {
  return printable(text).replace(/[&<>"]/g, (character) => ENTITIES[character]!);
}

/** An element. Numbers to a tenth. `content` is SVG already. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number | undefined>>,
  content = '',
): string {
  const list = Object.entries(attributes).map(([key, value]) => {
    if (value === undefined) return '';
    return ` ${key}="${typeof value === 'number' ? Math.round(value * 10) / 10 : escaped(value)}"`;
  });
  return content === '' ? `<${name}${list.join('')}/>` : `<${name}${list.join('')}>${content}</${name}>`;
}

/** What a browser shows of the element that it is in, where the pointer rests. */
export function hoverText(text: string): string {
  return element('title', {}, escaped(text));
}
