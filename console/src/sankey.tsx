// Sankey: one column for each dimension, widths by total. Drawn as SVG, which can be saved.

import { total } from "./format";
import { COLORS } from "./graph";
import type { Row } from "./api";

interface Node { name: string; value: number; y: number; height: number; color: string; in: number; out: number }
interface Link { from: Node; to: Node; value: number }

const WIDTH = 960, HEIGHT = 420, BAR = 12, GAP = 6, LEAST = 1;

/** Nodes of each column and the links between neighbouring columns; "Other" has one node in each column. */
export function layout(rows: Row[], depth: number): { columns: Node[][]; links: Link[] } {
  const columns: Map<string, Node>[] = Array.from({ length: depth }, () => new Map());
  const links = new Map<string, Link>();
  const colors = new Map<string, string>();
  for (const row of rows) {
    if (row.role === "total" || row.axis !== 1 || row.total <= 0) continue;
    const path = Array.from({ length: depth }, (_, i) => row.role === "other" ? "Other" : row.key[i] === "" ? "(none)" : row.key[i] ?? "");
    const nodes = path.map((name, i) => {
      if (!colors.has(name)) colors.set(name, name === "Other" ? "#8a929b" : COLORS[colors.size % COLORS.length] ?? "#3f7fd4");
      const column = columns[i] as Map<string, Node>;
      let node = column.get(name);
      if (node === undefined) column.set(name, node = { name, value: 0, y: 0, height: 0, color: colors.get(name) ?? "#3f7fd4", in: 0, out: 0 });
      node.value += row.total;
      return node;
    });
    for (let i = 0; i + 1 < depth; i++) {
      const key = JSON.stringify([i, path[i], path[i + 1]]);
      const link = links.get(key);
      if (link !== undefined) link.value += row.total;
      else links.set(key, { from: nodes[i] as Node, to: nodes[i + 1] as Node, value: row.total });
    }
  }
  const sorted = columns.map((column) => [...column.values()].sort((a, b) => Number(a.name === "Other") - Number(b.name === "Other") || b.value - a.value));
  const sum = Math.max(1e-9, ...sorted.map((column) => column.reduce((all, node) => all + node.value, 0)));
  const most = Math.max(1, ...sorted.map((column) => column.length));
  const scale = Math.max(10, HEIGHT - GAP * (most - 1)) / sum;
  for (const column of sorted) {
    let y = 0;
    for (const node of column) {
      node.y = y;
      node.height = Math.max(LEAST, node.value * scale);
      y += node.height + GAP;
    }
  }
  return { columns: sorted, links: [...links.values()].sort((a, b) => b.value - a.value) };
}

export function Sankey({ rows, dimensions, metric }: { rows: Row[]; dimensions: string[]; metric: string }) {
  if (dimensions.length < 2) return <p class="dim">A sankey needs at least two dimensions: add one under "Group by".</p>;
  const { columns, links } = layout(rows, dimensions.length);
  const x = (column: number) => column * (WIDTH - BAR) / (dimensions.length - 1);
  const place = new Map<Node, number>();
  columns.forEach((column, i) => column.forEach((node) => place.set(node, i)));
  const height = Math.max(HEIGHT, ...columns.map((column) => { const last = column[column.length - 1]; return last === undefined ? 0 : last.y + last.height; }));
  const shapes = links.map((link) => {
    const thick = (node: Node) => node.height * link.value / Math.max(1e-9, node.value);
    const [a, b] = [thick(link.from), thick(link.to)];
    const [y0, y1] = [link.from.y + link.from.out, link.to.y + link.to.in];
    link.from.out += a;
    link.to.in += b;
    const i = place.get(link.from) ?? 0;
    const [x0, x1] = [x(i) + BAR, x(i + 1)];
    const middle = (x0 + x1) / 2;
    return <path d={`M${x0},${y0} C${middle},${y0} ${middle},${y1} ${x1},${y1} L${x1},${y1 + b} C${middle},${y1 + b} ${middle},${y0 + a} ${x0},${y0 + a} Z`} fill={link.from.color} opacity="0.35">
      <title>{`${link.from.name} → ${link.to.name}: ${total(link.value, metric)}`}</title>
    </path>;
  });
  return <div class="scroll" tabIndex={0}><svg viewBox={`0 -18 ${WIDTH} ${height + 24}`} role="img" aria-label="Sankey; the table below has the same values" class="sankey">
    {dimensions.map((name, i) => <text x={i === dimensions.length - 1 ? WIDTH : x(i)} y={-6} text-anchor={i === dimensions.length - 1 ? "end" : "start"} class="head">{name}</text>)}
    {shapes}
    {columns.map((column, i) => column.map((node) => <g>
      <rect x={x(i)} y={node.y} width={BAR} height={node.height} fill={node.color}><title>{`${node.name}: ${total(node.value, metric)}`}</title></rect>
      {node.height > 9 && <text x={i === dimensions.length - 1 ? x(i) - 4 : x(i) + BAR + 4} y={node.y + node.height / 2 + 4} text-anchor={i === dimensions.length - 1 ? "end" : "start"}>{node.name}</text>}
    </g>))}
  </svg></div>;
}
