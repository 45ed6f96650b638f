// The legend below a picture, and the bar of memory in it.
import { formatBytes } from 'numalign/tools';
import { type Block, line, stack } from './blocks.js';
import { fillLines, type Look, SMALL, TEXT } from './look.js';
import { element, hoverText } from './svg.js';

export interface Portion extends Look {
  readonly bytes: number;
}

const BAR = 9;
const ABOVE_BAR = 3;

/** A bar with a portion for each holder; the rest is free. */
export function memoryBar(text: string, total: number, portions: readonly Portion[]): Block {
  const label = line(text, { size: SMALL, className: 'quiet' });
  return {
    width: label.width,
    height: label.height + ABOVE_BAR + BAR,
    draw: (x, y, width) => {
      const top = y + label.height + ABOVE_BAR;
      let start = 0;
      const parts = portions.map(({ className, text: holder, bytes }) => {
        const part = Math.min(Math.max(bytes, 0), total - start);
        if (part === 0) return '';
        const at = { x: x + (start / total) * width, y: top, width: (part / total) * width, height: BAR };
        start += part;
        const inside = `${hoverText(`${holder}: ${formatBytes(bytes)}`)}${element('rect', { ...at, class: `cell ${className}` })}`;
        return element('g', {}, inside);
      });
      const whole = element('rect', { x, y: top, width, height: BAR, class: 'cell free' });
      return `${label.draw(x, y, width, label.height)}${whole}${parts.join('')}`;
    },
  };
}

export interface LegendEntry extends Look {
  readonly details: string;
}

const SWATCH = 22;
/** Fewer rows are easier to read in one column. */
export const LEAST_ROWS = 16;
export const COLUMN_GAP = 24;

export const legendLeft = (names: number) => SWATCH + names + 12;

// Lists of CPUs may be long, and have no spaces.
export const spaceList = (details: string) => details.replace(/,(?! )/g, ', ');

export function legendRow({ className, text, details }: LegendEntry, names: number, width: number): Block {
  const left = legendLeft(names);
  const lines = stack(fillLines(spaceList(details), width - left, { size: TEXT }), 0);
  const name = line(text, { size: TEXT, className: 'strong' });
  return {
    width,
    height: Math.max(lines.height, name.height),
    draw: (x, y) => {
      const swatch = element('rect', {
        x: x + 1,
        y: y + 3,
        width: 14,
        height: 12,
        rx: 2,
        class: `cell ${className}`,
      });
      const words = name.draw(x + SWATCH, y, names, name.height);
      return `${swatch}${words}${lines.draw(x + left, y, width - left, lines.height)}`;
    },
  };
}
