// Elements of the page as text. Pure: what comes from outside goes through `escaped` or `element`.
import { type Attributes, attributesText, escaped, element as svg } from '../picture/svg.js';

export { escaped };

/** An element; `content` is HTML, not text. */
export function element(name: string, attributes: Attributes, content: string): string {
  return `<${name}${attributesText(attributes)}>${content}</${name}>`;
}

/** An element with text from outside. */
export function textElement(name: string, text: string, attributes: Attributes = {}): string {
  return element(name, attributes, text.split('\n').map(escaped).join('\n'));
}

/** A patch in the colour of a class, beside words that say the same. */
export function swatch(className: string): string {
  const rect = svg('rect', { x: 1, y: 1, width: 14, height: 12, rx: 2, class: `cell ${className}` });
  return svg('svg', { class: 'swatch', width: 16, height: 14, 'aria-hidden': 'true' }, rect);
}

export interface Column {
  readonly title: string;
  /** What the title is short for. */
  readonly about?: string;
  readonly isNumber?: boolean;
}

/** A row of cells, as HTML; the first is its head. */
export interface Row {
  /** Identifies the row while its content changes. */
  readonly key: string;
  readonly cells: readonly string[];
}

/** A table in a region that scrolls sideways, also by keyboard. */
export function table(label: string, columns: readonly Column[], rows: readonly Row[]): string {
  const classOf = ({ isNumber }: Column) => (isNumber ? 'number' : undefined);
  const heads = columns.map((column) => {
    const { title, about } = column;
    const text = about === undefined ? escaped(title) : textElement('abbr', title, { title: about });
    return element('th', { scope: 'col', class: classOf(column) }, text);
  });
  const lines = rows.map(({ key, cells }) => {
    const [head, ...others] = cells;
    const data = others.map((cell, i) => element('td', { class: classOf(columns[i + 1]!) }, cell || '-'));
    return element('tr', { 'data-key': key }, element('th', { scope: 'row' }, head!) + data.join(''));
  });
  const content = [
    textElement('caption', label, { class: 'hidden' }),
    element('thead', {}, element('tr', {}, heads.join(''))),
    element('tbody', {}, lines.join('')),
  ];
  return scrolling(`${label}, table`, element('table', {}, content.join('')));
}

/** A region that scrolls sideways, also by keyboard. */
export function scrolling(label: string, content: string): string {
  return element('div', { class: 'scrolling', role: 'region', 'aria-label': label, tabindex: 0 }, content);
}
