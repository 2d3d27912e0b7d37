// Heatmap: a line for each key, a column for each point, darker is more. The scale is logarithmic.

import { useEffect, useRef } from "preact/hooks";
import { rate } from "./format";
import type { Series } from "./graph";

interface Props { times: number[]; step: number; series: Series[]; metric: string; dark: boolean; onZoom: (from: number, to: number) => void }

const LINE = 22, LABEL = 180;

export function Heatmap({ times, step, series, metric, dark, onZoom }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const begin = useRef<number | null>(null);
  const most = Math.max(1, ...series.flatMap((s) => s.points));
  const index = (x: number, width: number) => Math.min(times.length - 1, Math.max(0, Math.floor((x - LABEL) / Math.max(1, width - LABEL) * times.length)));
  useEffect(() => {
    const at = canvas.current;
    if (at === null || times.length === 0) return;
    const draw = () => {
      const width = at.clientWidth, scale = devicePixelRatio || 1;
      at.width = width * scale;
      at.height = (series.length * LINE + 20) * scale;
      const context = at.getContext("2d");
      if (context === null) return;
      context.scale(scale, scale);
      context.font = "12px system-ui,sans-serif";
      const css = getComputedStyle(document.documentElement);
      const cell = (width - LABEL) / times.length;
      series.forEach((s, line) => {
        context.fillStyle = css.getPropertyValue("--text");
        context.fillText(s.name.length > 26 ? s.name.slice(0, 25) + "…" : s.name, 0, line * LINE + 15);
        s.points.forEach((value, i) => {
          const part = value <= 0 ? 0 : Math.max(0.06, Math.log1p(value) / Math.log1p(most));
          context.fillStyle = dark ? `hsl(210 80% ${12 + 60 * part}%)` : `hsl(215 75% ${97 - 65 * part}%)`;
          context.fillRect(LABEL + i * cell, line * LINE, Math.ceil(cell), LINE - 2);
        });
      });
      context.fillStyle = css.getPropertyValue("--dim");
      const clock = (t: number) => new Date(t * 1000).toISOString().slice(step >= 86_400 ? 0 : 11, step >= 86_400 ? 10 : 16);
      [0, 0.5, 1].forEach((part) => {
        const i = Math.min(times.length - 1, Math.round(part * (times.length - 1)));
        context.textAlign = part === 0 ? "left" : part === 1 ? "right" : "center";
        context.fillText(clock(times[i] ?? 0), LABEL + part * (width - LABEL), series.length * LINE + 14);
      });
      context.textAlign = "left";
    };
    draw();
    addEventListener("resize", draw);
    return () => removeEventListener("resize", draw);
  }, [times, series, dark]);
  const tell = (e: MouseEvent) => {
    const at = canvas.current;
    if (at === null) return;
    const s = series[Math.floor(e.offsetY / LINE)], i = index(e.offsetX, at.clientWidth);
    at.title = s === undefined || e.offsetX < LABEL ? "" : `${s.name}: ${rate(s.points[i] ?? 0, metric)}`;
  };
  const up = (e: MouseEvent) => {
    const at = canvas.current, from = begin.current;
    begin.current = null;
    if (at === null || from === null || Math.abs(e.offsetX - from) < 5) return;
    const [a, b] = [index(Math.min(from, e.offsetX), at.clientWidth), index(Math.max(from, e.offsetX), at.clientWidth)];
    onZoom(times[a] ?? 0, (times[b] ?? 0) + step);
  };
  return <canvas ref={canvas} class="heatmap" style={{ height: `${series.length * LINE + 20}px` }} role="img" aria-label="Heatmap; the table below has the same values"
    onMouseDown={(e) => { begin.current = e.offsetX; }} onMouseUp={up} onMouseMove={tell} />;
}
