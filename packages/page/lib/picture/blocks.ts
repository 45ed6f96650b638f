// The blocks of a picture. Each knows the room that it needs, and is drawn into the room that it
// gets. Pure.
import { shorten } from '../words/text.js';
import { element, escaped, hoverText } from './svg.js';

export interface Block {
  readonly width: number;
  readonly height: number;
  /** Draws the block into a room of at least its own size. */
  draw(x: number, y: number, width: number, height: number): string;
}

/**
 * The width of a character relative to the font size. Most monospaced fonts are about this wide.
 */
const CHARACTER = 0.61;

export function textWidth(text: string, size: number): number {
  return text.length * size * CHARACTER;
}

/** The number of characters that fit. */
export function charactersIn(width: number, size: number): number {
  return Math.floor(width / (size * CHARACTER));
}

export interface LineOptions {
  readonly size: number;
  /** Classes of the style. */
  readonly className?: string;
  /** The most room that the line asks for. It is cut to its room; the hover text is whole. */
  readonly maxWidth?: number;
}

/** A line of text. */
export function line(
  text: string,
  { size, className, maxWidth = Number.POSITIVE_INFINITY }: LineOptions,
): Block {
  return {
    width: Math.min(textWidth(text, size), maxWidth),
    height: size * 1.4,
    draw: (x, y, width) => {
      const short = shorten(text, charactersIn(width + 0.01, size));
      const content = `${short === text ? '' : hoverText(text)}${escaped(short)}`;
      return element('text', { x, y: y + size * 1.05, 'font-size': size, class: className }, content);
    },
  };
}

/** Blocks one below the other. */
export function stack(blocks: readonly Block[], gap: number): Block {
  return {
    width: Math.max(0, ...blocks.map(({ width }) => width)),
    height: blocks.reduce((sum, { height }) => sum + height, Math.max(0, blocks.length - 1) * gap),
    draw: (x, y, width) => {
      let top = y;
      return blocks
        .map((block) => {
          const svg = block.draw(x, top, width, block.height);
          top += block.height + gap;
          return svg;
        })
        .join('');
    },
  };
}

/** Blocks of the same width side by side. */
export function row(blocks: readonly Block[], gap = 0): Block {
  const gaps = gap * Math.max(0, blocks.length - 1);
  return {
    width: Math.max(0, ...blocks.map(({ width }) => width)) * blocks.length + gaps,
    height: Math.max(0, ...blocks.map(({ height }) => height)),
    draw: (x, y, width, height) => {
      const each = (width - gaps) / blocks.length;
      return blocks.map((block, i) => block.draw(x + i * (each + gap), y, each, height)).join('');
    },
  };
}

/** A good ratio of width to height. */
const ASPECT = 1.8;

/**
 * Blocks in columns of one width, within `maxWidth`. The number of columns gives a shape near
 * {@link ASPECT} with few empty places.
 */
export function grid(blocks: readonly Block[], gap: number, maxWidth: number): Block {
  const cell = Math.max(0, ...blocks.map(({ width }) => width));
  const layout = (columns: number) => {
    const rows = Array.from({ length: Math.ceil(blocks.length / columns) }, (_, i) =>
      blocks.slice(i * columns, (i + 1) * columns),
    );
    const heights = rows.map((each) => Math.max(...each.map(({ height }) => height)));
    const width = columns * (cell + gap) - gap;
    const height = heights.reduce((sum, each) => sum + each + gap, -gap);
    const empty = (rows.length * columns - blocks.length) / blocks.length;
    return {
      columns,
      rows,
      heights,
      width,
      height,
      cost: Math.abs(Math.log(width / height / ASPECT)) + 3 * empty,
    };
  };
  const most = Math.max(1, Math.min(blocks.length, Math.floor((maxWidth + gap) / (cell + gap))));
  const { columns, rows, heights, width, height } = Array.from({ length: most }, (_, i) =>
    layout(i + 1),
  ).reduce((best, each) => (each.cost < best.cost ? each : best));
  return {
    width,
    height,
    draw: (x, y, room) => {
      const column = (room + gap) / columns - gap;
      let top = y;
      return rows
        .map((each, i) => {
          const cells = each.map((block, j) => block.draw(x + j * (column + gap), top, column, heights[i]!));
          top += heights[i]! + gap;
          return cells.join('');
        })
        .join('');
    },
  };
}

/** A frame around a block. */
export function frame(content: Block, padding: number, className: string, hover?: string): Block {
  return {
    width: content.width + 2 * padding,
    height: content.height + 2 * padding,
    draw: (x, y, width, height) => {
      const around = element('rect', { x, y, width, height, rx: 3, class: className });
      const inside = content.draw(x + padding, y + padding, width - 2 * padding, height - 2 * padding);
      return hover === undefined
        ? `${around}${inside}`
        : element('g', {}, `${hoverText(hover)}${around}${inside}`);
    },
  };
}
