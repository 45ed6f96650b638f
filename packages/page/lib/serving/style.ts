// The style sheet of the page: its own part, and that of the picture.
import { styleSheet } from '../picture/style.js';

/** Sheets have colours for so many holders, or a multiple. */
const STEP = 32;
const MOST_COLORS = 2048;

/** The number of colours of the sheet that a page with so many holders needs. */
export function sheetColors(holders: number): number {
  return Math.min(Math.max(Math.ceil(holders / STEP), 1) * STEP, MOST_COLORS);
}

export function pageStyle(colors: number): string {
  return `${PAGE}\n${styleSheet(sheetColors(Number.isFinite(colors) ? colors : 0))}\n`;
}

const PAGE = `
:root{color-scheme:light dark;--text:#12161b;--quiet:#57606a;--ground:#f6f8fa;--card:#fff;--line:#d0d7de;--accent:#0a5cc0;--good:#1a7f37;--bad:#cf222e;--notice:#fff8c5}
@media (prefers-color-scheme:dark){:root{--text:#f0f3f6;--quiet:#9aa4af;--ground:#010409;--card:#0d1117;--line:#30363d;--accent:#58a6ff;--good:#3fb950;--bad:#ff7b72;--notice:#272115}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif}
header,main{max-width:112rem;margin:0 auto;padding:0 1.5rem}
header{display:flex;flex-wrap:wrap;align-items:baseline;gap:.25rem 1.25rem;padding-top:1.5rem;padding-bottom:1rem}
h1{font-size:1.35rem;font-weight:600;margin:0}
h2{font-size:1rem;font-weight:600;margin:0 0 .75rem}
header p{margin:0;color:var(--quiet)}
.following{margin-left:auto;display:flex;gap:.5rem;align-items:baseline}
.following time{font-variant-numeric:tabular-nums}
.following [role=status]::before{content:"";display:inline-block;width:.6em;height:.6em;border-radius:50%;margin-right:.45em;background:var(--quiet)}
.live [role=status]::before{background:var(--good)}
.lost [role=status]::before{background:var(--bad)}
main{display:flex;flex-wrap:wrap;gap:1.25rem;padding-bottom:2.5rem;align-items:flex-start}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:1rem 1.25rem;min-width:0}
#grants,#notices{flex:1 1 100%}
#picture{flex:0 1 auto;max-width:100%}
#summary{flex:1 1 24rem}
#waiting{flex:1 1 14rem}
#rejections{flex:3 1 30rem}
section p{margin:0;color:var(--quiet)}
#notices:empty{display:none}
.notice{background:var(--notice);color:var(--text);border:1px solid var(--line);border-radius:8px;padding:.6rem 1rem;margin:0}
.notice+.notice{margin-top:.5rem}
dl{margin:0}
dl div{display:flex;gap:1rem;padding:.3rem 0}
dl div+div{border-top:1px solid var(--line)}
dt{flex:0 0 8.5rem;color:var(--quiet)}
dd{margin:0;min-width:0;overflow-wrap:anywhere}
.scrolling{overflow-x:auto;max-width:100%}
#picture svg{display:block}
.swatch{flex:none;vertical-align:-1px;margin-right:.45rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.4rem .9rem .4rem 0;border-bottom:1px solid var(--line);white-space:nowrap}
th:last-child,td:last-child{padding-right:0}
tbody tr:last-child>*{border-bottom:0}
thead th{color:var(--quiet);font-weight:500;font-size:.85rem}
tbody th{font-weight:600}
td:nth-child(2),td:nth-child(4){white-space:normal;min-width:5rem;max-width:18rem;overflow-wrap:anywhere}
td:nth-child(5){max-width:18rem;overflow:hidden;text-overflow:ellipsis}
abbr{text-decoration:none}
.number{text-align:right;font-variant-numeric:tabular-nums}
.name{overflow-wrap:anywhere}
.note{font-weight:400;font-size:.85rem;color:var(--quiet);white-space:normal;max-width:20rem;padding-left:1.4rem}
ol{margin:0;padding-left:1.4rem}
.plain{list-style:none;padding:0}
.plain li+li{border-top:1px solid var(--line);margin-top:.5rem;padding-top:.5rem}
summary{cursor:pointer}
summary time{color:var(--quiet);font-variant-numeric:tabular-nums}
code,pre{font:.85rem/1.5 ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace}
pre{margin:.5rem 0 0;white-space:pre-wrap;overflow-wrap:anywhere;background:var(--ground);border-radius:6px;padding:.6rem .8rem}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:3px}
.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (max-width:40rem){header,main{padding-left:.75rem;padding-right:.75rem}.following{margin-left:0}}
`.trim();
