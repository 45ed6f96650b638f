// Runs in a page of browser.test.ts: measures the picture in a browser.

/** By WCAG 2, of a color as getComputedStyle() gives it. */
function luminance(color) {
  const [r, g, b] = color.match(/[\d.]+/g).map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrastOf(...colors) {
  const [darker, lighter] = colors.map(luminance).sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

// biome-ignore lint/correctness/noUnusedVariables: the page calls it
function measure() {
  const svg = document.querySelector('svg');
  const { width, height } = svg.viewBox.baseVal;
  const texts = [...svg.querySelectorAll('text')].map((text) => {
    const { x, y, width: w, height: h } = text.getBBox();
    // Lines may overlap above and below their letters.
    return {
      text: text.lastChild.textContent,
      left: x,
      right: x + w,
      top: y + h * 0.25,
      bottom: y + h * 0.8,
    };
  });
  const isOver = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const namesOf = (list) => list.map(({ text }) => text);
  const fillOf = (element) => getComputedStyle(element).fill;
  const page = fillOf(svg.querySelector('.page'));
  const cells = [...svg.querySelectorAll('[data-cpu]')].map((cell) => {
    const [rect, text] = [cell.querySelector('rect'), cell.querySelector('text')];
    const fill = fillOf(rect) === 'none' ? page : fillOf(rect);
    const isTight = text.getBBox().width > rect.getBBox().width;
    return { text: text.textContent, fill, isTight, contrast: contrastOf(fill, fillOf(text)) };
  });
  return {
    imageWidth: document.querySelector('img').naturalWidth,
    page,
    cpus: cells.length,
    outside: namesOf(texts.filter((t) => t.left < 0 || t.top < 0 || t.right > width || t.bottom > height)),
    tight: namesOf(cells.filter(({ isTight }) => isTight)),
    overlapping: namesOf(texts.filter((text, i) => texts.slice(i + 1).some((other) => isOver(text, other)))),
    contrast: Math.min(...cells.map(({ contrast }) => contrast)),
    colors: new Set(cells.map(({ fill }) => fill)).size,
  };
}
