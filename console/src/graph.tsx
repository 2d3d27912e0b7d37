// The graph: lines with confidence bands, or stacked areas. Selecting a part with the mouse zooms.

import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { rate } from "./format";

export interface Series { name: string; color: string; points: number[]; half: number[] }

/** Something that happened at a time. */
export interface Mark { time: number; kind: string; text: string }

/** Colours that are distinguished in both themes. */
export const COLORS = ["#3f7fd4", "#d9822b", "#2e9e5b", "#c2417c", "#8a63d2", "#1f9aa8", "#b8901c", "#d05a4e", "#5f8f2f", "#7a7fa8", "#a0693c", "#4aa3df"];

interface Props { times: number[]; step: number; series: Series[]; stacked: boolean; metric: string; dark: boolean; onZoom: (from: number, to: number) => void; marks: Mark[] }

export function Graph({ times, step, series, stacked, metric, dark, onZoom, marks }: Props) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const at = place.current;
    if (at === null || times.length === 0) return;
    const css = getComputedStyle(document.documentElement);
    const text = css.getPropertyValue("--dim").trim(), line = css.getPropertyValue("--line").trim();
    const sums = new Array<number>(times.length).fill(0);
    // Of stacked areas each line is the sum of those before it; the topmost is drawn first.
    const shown = series.map((s) => s.points.map((value, i) => stacked ? (sums[i] = (sums[i] ?? 0) + value) : value));
    const order = stacked ? [...series.keys()].reverse() : [...series.keys()];
    const bands = (u: uPlot) => {
      if (stacked) return;
      const context = u.ctx;
      order.forEach((index) => {
        const s = series[index];
        if (s === undefined || s.half.length === 0) return;
        context.save();
        context.globalAlpha = 0.18;
        context.fillStyle = s.color;
        context.beginPath();
        times.forEach((t, i) => context.lineTo(u.valToPos(t, "x", true), u.valToPos((s.points[i] ?? 0) + (s.half[i] ?? 0), "y", true)));
        for (let i = times.length - 1; i >= 0; i--) {
          context.lineTo(u.valToPos(times[i] ?? 0, "x", true), u.valToPos(Math.max(0, (s.points[i] ?? 0) - (s.half[i] ?? 0)), "y", true));
        }
        context.fill();
        context.restore();
      });
    };
    const events = (u: uPlot) => {
      const context = u.ctx;
      context.save();
      context.strokeStyle = css.getPropertyValue("--bad").trim();
      context.setLineDash([4, 4]);
      for (const mark of marks) {
        const x = u.valToPos(mark.time, "x", true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
        context.beginPath();
        context.moveTo(x, u.bbox.top);
        context.lineTo(x, u.bbox.top + u.bbox.height);
        context.stroke();
      }
      context.restore();
    };
    const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const plot = new uPlot({
      width: at.clientWidth, height: 320,
      series: [{}, ...order.map((index) => {
        const s = series[index] as Series;
        return { label: s.name, stroke: s.color, width: stacked ? 1 : 1.5, ...(stacked ? { fill: s.color + "cc" } : {}), points: { show: times.length < 3 } };
      })],
      axes: [axis, { ...axis, size: 90, values: (_: uPlot, values: number[]) => values.map((value) => rate(value, metric)) }],
      scales: { y: { range: (_: uPlot, __: number, max: number) => [0, max > 0 ? max * 1.05 : 1] } },
      cursor: { drag: { x: true, y: false } },
      hooks: {
        draw: [bands, events],
        setSelect: [(u: uPlot) => {
          if (u.select.width > 4) onZoom(Math.floor(u.posToVal(u.select.left, "x")), Math.ceil(u.posToVal(u.select.left + u.select.width, "x")) + step);
        }],
      },
    }, [times, ...order.map((index) => shown[index] ?? [])], at);
    const resized = () => plot.setSize({ width: at.clientWidth, height: 320 });
    addEventListener("resize", resized);
    return () => { removeEventListener("resize", resized); plot.destroy(); };
  }, [times, series, stacked, dark, metric, marks]);
  return <div ref={place} role="img" aria-label="Graph; the table below has the same values" />;
}
