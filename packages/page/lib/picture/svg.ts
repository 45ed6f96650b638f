// SVG as text. Pure.
import { printable } from 'numalign/tools';

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Escapes text from outside for XML. */
export function escaped(text: string): string {
  return printable(text).replace(/[&<>"]/g, (character) => ENTITIES[character]!);
}

export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** Numbers are rounded to a tenth. */
export function attributesText(attributes: Attributes): string {
  const list = Object.entries(attributes).map(([key, value]) => {
    if (value === undefined) return '';
    return ` ${key}="${typeof value === 'number' ? Math.round(value * 10) / 10 : escaped(value)}"`;
  });
  return list.join('');
}

/** An element; `content` is SVG, not text. */
export function element(name: string, attributes: Attributes, content = ''): string {
  const start = `<${name}${attributesText(attributes)}`;
  return content === '' ? `${start}/>` : `${start}>${content}</${name}>`;
}

/** A child element whose text a browser shows when the pointer rests on its parent. */
export function hoverText(text: string): string {
  return element('title', {}, escaped(text));
}
