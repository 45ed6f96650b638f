// The colours of a picture, light and dark. Pure.

/** The class of the parts of the holder at this index. */
export function holderClass(index: number): string {
  return `holder-${index}`;
}

// Steps by the golden angle make neighbours differ most, for any number of holders. After eight,
// hues come close again: the shade changes. Text is readable on every hue (contrast 4.5 to 1 or
// better).
function fill(index: number, saturation: number, lightness: readonly number[]): string {
  const hue = Math.round((28 + index * 137.508) % 360);
  const shade = lightness[Math.floor(index / 8) % lightness.length]!;
  return `.${holderClass(index)}{fill:hsl(${hue},${saturation}%,${shade}%)}`;
}

const indices = (count: number) => Array.from({ length: count }, (_, i) => i);

/** The text of the style element for this number of holders. */
export function styleSheet(holders: number): string {
  const day = indices(holders).map((i) => fill(i, 72, [76, 86, 70]));
  const night = indices(holders).map((i) => fill(i, 50, [28, 18, 24]));
  return [
    'text{font-family:ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#12161b}',
    '.strong{font-weight:bold}.quiet{fill:#57606a}.cpu{text-anchor:middle}',
    '.page{fill:#fff}.box{fill:#fff;stroke:#8c959f}.package{fill:#eef1f4}.node{fill:#fff}.l3{fill:#f3f5f7}.core{fill:none;stroke:#8c959f}',
    '.cell{stroke:#6e7781;stroke-width:.6}',
    '.plain{fill:#fff}.free{fill:#fff}.reserved{fill:#c2c8cf}.granted{fill:#8c959f}.isolated{fill:#fff;stroke:#0a5cc0;stroke-width:1.6;stroke-dasharray:2 1.4}',
    '.unmanaged{fill:none;stroke-dasharray:1 2}.offline{fill:none;stroke-dasharray:4 2}',
    ...day,
    '.highlighted{stroke:#000;stroke-width:1.8}',
    '@media (prefers-color-scheme:dark){',
    'text{fill:#f0f3f6}.quiet{fill:#9aa4af}',
    '.page{fill:#0d1117}.box{fill:#0d1117;stroke:#5b636d}.package{fill:#161b22}.node{fill:#0d1117}.l3{fill:#171d25}.core{stroke:#5b636d}',
    '.cell{stroke:#7d8590}',
    '.plain{fill:#0d1117}.free{fill:#0d1117}.reserved{fill:#444c56}.granted{fill:#6e7681}.isolated{fill:#0d1117;stroke:#58a6ff}',
    ...night,
    '.highlighted{stroke:#fff}',
    '}',
  ].join('\n');
}
