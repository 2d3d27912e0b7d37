// The explorer: options, filter, graph, table.

import { useEffect, useRef, useState } from "preact/hooks";
import { type Answer, type Dimension, type Live, type Row, call } from "./api";
import { count, rate, total } from "./format";
import { COLORS, Graph, type Mark, type Series } from "./graph";
import { Heatmap } from "./heatmap";
import { Sankey } from "./sankey";
import type { State } from "./state";

interface Props { state: State; set: (change: Partial<State>) => void; dark: boolean; fail: (error: unknown) => string }

const AXES = ["", "", " (reverse)", " (previous)", " (previous, reverse)"];
const label = (row: Row) => (row.role === "total" ? "Total" : row.key.map((part) => part === "" ? "(none)" : part).join(" · ")) + (AXES[row.axis] ?? "");
const PERIODS: [string, string][] = [["-15m", "15 minutes"], ["-1h", "1 hour"], ["-6h", "6 hours"], ["-24h", "24 hours"], ["-7d", "7 days"], ["-30d", "30 days"]];

export function Explorer({ state, set, dark, fail }: Props) {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [live, setLive] = useState<Live | null>(null);
  const [marks, setMarks] = useState<Mark[]>([]);
  const [error, setError] = useState("");
  const [dimensions, setDimensions] = useState<Dimension[]>([]);
  useEffect(() => { call<Dimension[]>("/api/v1/dimensions").then(setDimensions, (e) => setError(fail(e))); }, []);

  const parameters = new URLSearchParams({
    from: state.from, to: state.to, dimensions: state.dimensions.join(","), filter: state.filter, metric: state.metric,
    limit: String(state.limit), points: "150", bidirectional: String(state.both), previous: String(state.previous),
  }).toString();

  useEffect(() => {
    if (state.live) return;
    let current = true;
    const load = () => call<Answer>(`/api/v1/query?${parameters}`).then(
      (found) => { if (current) { setAnswer(found); setError(""); } },
      (e) => { if (current) setError(fail(e)); });
    load();
    // A period that ends now goes on.
    const timer = state.to === "now" ? setInterval(load, 30_000) : undefined;
    return () => { current = false; clearInterval(timer); };
  }, [parameters, state.live]);

  useEffect(() => {
    let current = true;
    // A tenant has no annotations.
    call<{ annotations: Mark[] }>(`/api/v1/annotations?${new URLSearchParams({ from: state.from, to: state.to })}`)
      .then((found) => { if (current) setMarks(found.annotations); }, () => { if (current) setMarks([]); });
    return () => { current = false; };
  }, [state.from, state.to, answer?.to]);

  useEffect(() => {
    if (!state.live) { setLive(null); return; }
    // A subscription: the collector sends a new answer after each second, until this page goes away.
    const line = new URLSearchParams({ dimensions: state.dimensions.join(","), filter: state.filter, metric: state.metric, limit: String(state.limit), seconds: "120" });
    const source = new EventSource(`/api/v1/live/stream?${line}`);
    source.onmessage = (event) => { setLive(JSON.parse(event.data as string) as Live); setError(""); };
    // The stream says only that it failed; the single answer says why.
    source.onerror = () => { if (source.readyState === EventSource.CLOSED) call<Live>(`/api/v1/live?${line}`).then(setLive, (e) => setError(fail(e))); };
    return () => source.close();
  }, [state.live, state.dimensions.join(","), state.filter, state.metric, state.limit]);

  const onZoom = (from: number, to: number) => set({ from: String(from), to: String(to), live: false });
  const add = (text: string) => set({ filter: state.filter === "" ? text : `(${state.filter}) AND ${text}` });

  return <div class="explorer">
    <form onSubmit={(e) => e.preventDefault()} aria-label="Query">
      <label>Measure<select value={state.metric} onChange={(e) => set({ metric: e.currentTarget.value })}>
        <option value="bits">IP bits/s</option><option value="l2bits">Frame bits/s</option><option value="packets">Packets/s</option>
        <option value="flows">Records/s</option><option value="discards">Discard notifications/s</option>
      </select></label>
      <label>Group by<select value="" onChange={(e) => { const name = e.currentTarget.value; if (name !== "") set({ dimensions: [...state.dimensions, name] }); }}>
        <option value="">add a dimension…</option>
        {dimensions.filter((d) => !state.dimensions.includes(d.name)).map((d) => <option value={d.name} title={d.help}>{d.name}</option>)}
      </select></label>
      <p>{state.dimensions.map((name) => <button type="button" class="tiny" aria-label={`Remove ${name}`} onClick={() => set({ dimensions: state.dimensions.filter((d) => d !== name) })}>{name} ✕</button>)}</p>
      <label>Period<select value={state.to === "now" ? state.from : "other"} onChange={(e) => { if (e.currentTarget.value !== "other") set({ from: e.currentTarget.value, to: "now" }); }}>
        {PERIODS.map(([value, text]) => <option value={value}>last {text}</option>)}
        <option value="other">selected</option>
      </select></label>
      <label>Graph<select value={state.graph} onChange={(e) => set({ graph: e.currentTarget.value })}>
        <option value="stacked">stacked</option><option value="line">lines with 95 % bands</option><option value="heatmap">heatmap</option>
        <option value="sankey">sankey</option><option value="table">table only</option>
      </select></label>
      <label>Rows<input type="number" min={1} max={50} value={state.limit} onChange={(e) => set({ limit: Math.min(50, Math.max(1, Number(e.currentTarget.value) || 10)) })} /></label>
      <label class="check"><input type="checkbox" checked={state.both} onChange={(e) => set({ both: e.currentTarget.checked })} />both directions</label>
      <label class="check"><input type="checkbox" checked={state.previous} onChange={(e) => set({ previous: e.currentTarget.checked })} />previous period</label>
    </form>
    <section>
      <Filter value={state.filter} dimensions={dimensions} onChange={(filter) => set({ filter })} />
      <p>
        <button class={state.live ? "on" : ""} aria-pressed={state.live} onClick={() => set({ live: !state.live })}>Live</button>{" "}
        <a href={`/api/v1/query?${parameters}&format=csv`} download>CSV</a>{" · "}<a href={`/api/v1/query?${parameters}`}>JSON</a>{" · "}<a href={`/api/v1/query?${parameters}&format=parquet`} download>Parquet</a>{" · "}
        <button type="button" class="tiny" aria-pressed={state.raw} onClick={() => set({ raw: !state.raw })}>{state.raw ? "Hide rows" : "Show rows"}</button>{" "}
        {answer !== null && !state.live && <Coverage answer={answer} />}
      </p>
      <p class="error" role="alert">{error}</p>
      {!state.live && answer === null && error === "" && <p class="dim">Loading…</p>}
      {state.live ? live !== null && <LiveView live={live} state={state} dark={dark} />
        : answer !== null && <History answer={answer} state={state} dark={dark} onZoom={onZoom} add={add} marks={marks} />}
      {state.raw && !state.live && <RawFlows state={state} fail={fail} />}
    </section>
  </div>;
}

function Coverage({ answer }: { answer: Answer }) {
  const c = answer.coverage;
  return <span class={c.lossy.length > 0 || c.rejected > 0 ? "error" : "dim"}>
    {c.percent !== null ? `Arrived: ${c.formats.map((f) => `${f.format} ${f.percent.toFixed(2)} %`).join(", ")}` : "no sequence numbers in this period"}
    {c.lossy[0] !== undefined && `; most was lost from ${c.lossy[0][0]}: ${c.lossy[0][1].toFixed(2)} %`}
    {c.rejected > 0 && `; ${count(c.rejected)} datagrams rejected`}
    {answer.unknown_rate_rows > 0 && `; ${count(answer.unknown_rate_rows)} rows of unknown sampling rate`}
    {` · ${count(answer.stored_rows)} rows, ${answer.resolution === "totals" ? "from totals (exact)" : answer.resolution === "tops" ? `from the largest keys, which have ${(answer.named_percent ?? 100).toFixed(1)} % of the total` : "from all rows"}, ${answer.milliseconds} ms`}
  </span>;
}

/** The newest stored rows that pass the filter. */
function RawFlows({ state, fail }: { state: State; fail: (error: unknown) => string }) {
  const [rows, setRows] = useState<Record<string, string>[] | null>(null);
  const [error, setError] = useState("");
  const line = new URLSearchParams({ from: state.from, to: state.to, filter: state.filter, limit: "100" }).toString();
  useEffect(() => { call<{ rows: Record<string, string>[] }>(`/api/v1/flows?${line}`).then((found) => { setRows(found.rows); setError(""); }, (e) => setError(fail(e))); }, [line]);
  const names = ["time", "ExporterName", "InIfName", "OutIfName", "SrcAddr", "SrcPort", "DstAddr", "DstPort", "Proto", "Outcome", "SamplingRate", "packets", "bytes"];
  return <>
    <h2>Newest rows <a class="small" href={`/api/v1/flows?${line.replace("limit=100", "limit=1000000")}&format=parquet`} download="rows.parquet">Parquet</a></h2>
    <p class="error" role="alert">{error}</p>
    {rows !== null && <div class="scroll" tabIndex={0}><table><thead><tr>{names.map((name) => <th>{name}</th>)}</tr></thead>
      <tbody>{rows.map((row) => <tr>{names.map((name) => <td>{name === "time" ? new Date(Number(row[name]) * 1000).toISOString().slice(0, 19).replace("T", " ") : row[name] ?? ""}</td>)}</tr>)}</tbody></table></div>}
  </>;
}

function History({ answer, state, dark, onZoom, add, marks }: { answer: Answer; state: State; dark: boolean; onZoom: (from: number, to: number) => void; add: (text: string) => void; marks: Mark[] }) {
  const shown = answer.rows.filter((row) => row.role !== "total" || answer.dimensions.length === 0);
  const color = (index: number, row: Row) => row.role === "other" ? "#8a929b" : COLORS[index % COLORS.length] ?? "#3f7fd4";
  const series: Series[] = shown.map((row, index) => ({ name: label(row), color: color(index, row), points: row.points, half: row.half }));
  const condition = (row: Row) => answer.dimensions.map((name, i) => `${name} = ${row.literal[i] ?? ""}`).join(" AND ");
  const metric = answer.metric;
  return <>
    {state.graph === "sankey" ? <Sankey rows={answer.rows} dimensions={answer.dimensions} metric={metric} />
      : state.graph === "heatmap" ? <Heatmap times={answer.times} step={answer.step} series={series} metric={metric} dark={dark} onZoom={onZoom} />
      : state.graph !== "table" && <Graph times={answer.times} step={answer.step} series={series} stacked={state.graph === "stacked"} metric={metric} dark={dark} onZoom={onZoom} marks={marks} />}
    {marks.length > 0 && <details><summary class="dim">{marks.length} events in this period</summary><ul>{marks.map((mark) => <li>{new Date(mark.time * 1000).toISOString().slice(0, 19).replace("T", " ")} {mark.text}</li>)}</ul></details>}
    <div class="scroll" tabIndex={0}><table aria-live="polite">
      <thead><tr><th>{answer.dimensions.join(" · ") || "All"}</th>{["Average", "Min", "Max", "Last", "95th", "Total", "95 % band"].map((name) => <th class="n">{name}</th>)}<th>Filter</th></tr></thead>
      <tbody>{answer.rows.map((row) => <tr>
        <td>{row.role !== "total" && <span class="swatch" style={{ background: color(shown.indexOf(row), row) }} />}{label(row)}{row.tied && <span class="dim" title="Its band overlaps that of the row above: the order is not certain"> ≈</span>}</td>
        {[row.average, row.min, row.max, row.last, row.p95].map((value) => <td class="n">{rate(value, metric)}</td>)}
        <td class="n">{total(row.total, metric)}</td>
        <td class="n">{row.band === null ? "exact" : `${total(row.band[0], metric)} – ${total(row.band[1], metric)}`}</td>
        <td>{row.role === "row" && row.axis === 1 && <>
          <button class="tiny" aria-label={`Only ${label(row)}`} onClick={() => add(condition(row))}>only</button>{" "}
          <button class="tiny" aria-label={`Without ${label(row)}`} onClick={() => add(`NOT (${condition(row)})`)}>without</button>
        </>}</td>
      </tr>)}</tbody>
    </table></div>
  </>;
}

function LiveView({ live, state, dark }: { live: Live; state: State; dark: boolean }) {
  const times = Array.from({ length: live.to - live.from }, (_, i) => live.from + i);
  const series: Series[] = live.rows.map((row, index) => ({
    name: row.key.join(" · ") || "All", color: row.key[0] === "Other" && row.key.length === 1 ? "#8a929b" : COLORS[index % COLORS.length] ?? "#3f7fd4", points: row.points, half: [],
  }));
  const last = (points: number[]) => points.slice(-5).reduce((a, b) => a + b, 0) / 5;
  return <>
    <p class="dim">One-second points of the last two minutes.</p>
    <Graph times={times} step={1} series={series} stacked={state.graph === "stacked"} metric={state.metric} dark={dark} onZoom={() => { /* live */ }} marks={[]} />
    <table><thead><tr><th>{state.dimensions.join(" · ") || "All"}</th><th class="n">Last 5 seconds</th></tr></thead>
      <tbody>{series.map((s) => <tr><td><span class="swatch" style={{ background: s.color }} />{s.name}</td><td class="n">{rate(last(s.points), state.metric)}</td></tr>)}</tbody></table>
  </>;
}

/** The filter line: checked while typing, completed from dimensions and stored values, applied by Enter. */
function Filter({ value, dimensions, onChange }: { value: string; dimensions: Dimension[]; onChange: (filter: string) => void }) {
  const [text, setText] = useState(value);
  const [message, setMessage] = useState("");
  const [options, setOptions] = useState<string[]>([]);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => { setText(value); setOptions([]); }, [value]);
  useEffect(() => {
    const key = (e: KeyboardEvent) => {
      if (e.key === "/" && !(e.target instanceof HTMLInputElement)) { e.preventDefault(); input.current?.focus(); }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
  const typed = (now: string) => {
    setText(now);
    const compare = /(\w+)\s*(?:=|!=)\s*"?([^\s"()]*)$/.exec(now);
    const word = /(?:^|[\s(])(\w*)$/.exec(now);
    if (compare !== null) {
      const line = new URLSearchParams({ column: compare[1] ?? "", prefix: compare[2] ?? "" });
      call<{ values: string[] }>(`/api/v1/complete?${line}`).then((found) => setOptions(found.values), () => setOptions([]));
    } else if (word !== null && word[1] !== "" && word[1] !== undefined) {
      const prefix = word[1].toLowerCase();
      setOptions(dimensions.map((d) => d.name).filter((name) => name.toLowerCase().startsWith(prefix) && name.toLowerCase() !== prefix));
    } else setOptions([]);
    call<{ valid: boolean; message?: string }>(`/api/v1/validate?${new URLSearchParams({ filter: now })}`).then((found) => setMessage(found.valid ? "" : found.message ?? ""), () => setMessage(""));
  };
  const take = (option: string) => { typed(text.replace(/"?[^\s"()=]*$/, option)); setOptions([]); input.current?.focus(); };
  return <>
    <div class="filter">
      <input ref={input} aria-label="Filter" placeholder="Filter, for example: Proto = udp AND DstAddr << 192.0.2.0/24   ( / )" spellcheck={false} value={text}
        onInput={(e) => typed(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === "Enter") { setOptions([]); onChange(text.trim()); } if (e.key === "Escape") setOptions([]); }} />
      <button onClick={() => { setOptions([]); onChange(text.trim()); }}>Apply</button>
      {options.length > 0 && <ul class="options">{options.slice(0, 12).map((option) => <li><button type="button" onClick={() => take(option)}>{option}</button></li>)}</ul>}
    </div>
    {message !== "" && <p class="error">{message}</p>}
  </>;
}
