// Exporters, health, alerts.

import { useEffect, useState } from "preact/hooks";
import { call } from "./api";
import { count, rate, when } from "./format";

type Fail = (error: unknown) => string;

/** Loads again every few seconds. */
function useEvery<T>(path: string, seconds: number, fail: Fail): [T | null, string, () => void] {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState("");
  const load = () => { call<T>(path).then((found) => { setValue(found); setError(""); }, (e) => setError(fail(e))); };
  useEffect(() => { load(); const timer = setInterval(load, seconds * 1000); return () => clearInterval(timer); }, [path]);
  return [value, error, load];
}

interface Counters {
  received: number; decoded: number; partly: number; waiting: number; rejected: number; reasons: Record<string, number>; rows: number;
  sequences: Record<string, { arrived: number; lost: number }>; unknown_rate: number; last_seen: number; formats: Record<string, number>; rates: Record<string, number>; clock_ahead: number | null;
}
interface Comparison { estimate: number; counted: number; samples: number; z: number | null }
interface Check { index: number; seconds: number; received: Comparison | null; sent: Comparison | null }
interface Conservation { sent: number; arrived: [number, number]; lost: number; not_sent: number; balanced: boolean }
interface Router { read: number; problem: string | null; sflow: Conservation | null; ipfix: Conservation | null }
interface Interface { index: number; name: string; description: string; speed: number; boundary: string; provider: string; connectivity: string }
interface Exporters { now: number; exporters: { address: string; name: string; role: string; site: string; tenant: string; coverage: number; counters: Counters; checks: Check[]; router: Router | null; interfaces: Interface[] }[] }

/** The estimate by samples compared with the interface's own counter. */
function Agreement({ of }: { of: Comparison | null }) {
  if (of === null) return null;
  const percent = of.counted > 0 ? `${(100 * of.estimate / of.counted).toFixed(1)} %` : "";
  return <span class={of.z !== null && Math.abs(of.z) > 4 ? "error" : "dim"}>{percent}{of.z !== null && ` (z ${of.z.toFixed(1)})`}</span>;
}

/** Whether everything that the router sent arrived, by its own counters. */
function Balance({ name, of }: { name: string; of: Conservation | null }) {
  if (of === null) return null;
  return <span class={of.balanced ? "good" : "error"}>{name}: {of.balanced ? "✓" : "✗"} {count(of.sent)} sent = {count(of.arrived[1])} arrived + {count(of.lost)} lost{of.not_sent > 0 && `, ${count(of.not_sent)} could not be sent`} </span>;
}

export function ExportersPage({ fail }: { fail: Fail }) {
  const [value, error] = useEvery<Exporters>("/api/v1/exporters", 5, fail);
  if (value === null) return <p role="alert" class="error">{error}</p>;
  const lost = (e: Exporters["exporters"][number]) => Object.values(e.counters.sequences).reduce((sum, u) => sum + u.lost, 0);
  if (value.exporters.length === 0) return <p>No exporter has sent anything yet. Point sFlow at port 6343, IPFIX at 4739, NetFlow at 2055.</p>;
  return <>{value.exporters.map((e) => <section class="card" style={{ marginBottom: "1rem" }}>
    <h2>{e.name} <span class="dim">{[e.name === e.address ? "" : e.address, e.role, e.site, e.tenant].filter((part) => part !== "").join(" · ")}</span></h2>
    <p>{Object.keys(e.counters.formats).join(", ")} · last datagram {value.now - e.counters.last_seen} s ago · <span class={lost(e) > 0 ? "error" : "good"}>arrived: {Object.entries(e.counters.sequences).map(([format, u]) => `${format} ${(100 * u.arrived / Math.max(1, u.arrived + u.lost)).toFixed(2)} %`).join(", ") || "no sequence numbers"}</span>
      {e.counters.clock_ahead !== null && Math.abs(e.counters.clock_ahead) > 60 && <span class="error"> · its clock is {e.counters.clock_ahead} s ahead</span>}</p>
    <div class="scroll" tabIndex={0}><table><thead><tr>{["Received", "Decoded", "Partly", "Waiting", "Rejected", "Lost", "Rows", "Unknown rate"].map((n) => <th class="n">{n}</th>)}</tr></thead>
      <tbody><tr>{[e.counters.received, e.counters.decoded, e.counters.partly, e.counters.waiting, e.counters.rejected, lost(e), e.counters.rows, e.counters.unknown_rate].map((n) => <td class="n">{count(n)}</td>)}</tr></tbody></table></div>
    {Object.keys(e.counters.reasons).length > 0 && <p class="error">{Object.entries(e.counters.reasons).map(([reason, n]) => `${reason}: ${count(n)}`).join(", ")}</p>}
    {Object.keys(e.counters.rates).length > 0 && <p>Sampling: {Object.entries(e.counters.rates).map(([source, n]) => `${source} 1:${n}`).join(", ")}</p>}
    {e.router !== null && <p>By the router's own counters: {e.router.problem !== null && <span class="error">{e.router.problem} </span>}<Balance name="sFlow" of={e.router.sflow} /><Balance name="IPFIX" of={e.router.ipfix} />{e.router.sflow === null && e.router.ipfix === null && e.router.problem === null && "nothing to compare yet"}</p>}
    {e.interfaces.length > 0 && <div class="scroll" tabIndex={0}><table><thead><tr><th class="n">Index</th><th>Interface</th><th>Description</th><th class="n">Speed</th><th>Class</th><th>Samples against counters, received</th><th>sent</th></tr></thead>
      <tbody>{e.interfaces.slice(0, 256).map((i) => { const check = e.checks.find((c) => c.index === i.index); return <tr><td class="n">{i.index}</td><td>{i.name}</td><td>{i.description}</td><td class="n">{i.speed > 0 ? rate(i.speed, "bits") : ""}</td>
        <td>{[i.boundary, i.connectivity, i.provider].filter((part) => part !== "").join(", ")}</td>{[check?.received, check?.sent].map((c) => <td><Agreement of={c ?? null} /></td>)}</tr>; })}</tbody></table></div>}
  </section>)}<p role="alert" class="error">{error}</p></>;
}

interface Health {
  version: string; started: number; rows: number; problems: string[];
  databases: { path: string; kind: string; built: number; problem: string | null }[];
  sources: Record<string, { read: number; exporters: number; networks: number; problem: string | null }>;
  bmp: { sessions: { from: string; name: string; peers: number; messages: number }[]; paths: number; prefixes: number } | null;
  datagrams: { received: number; decoded: number; partly: number; waiting: number; rejected: number; balance: boolean; kernel_dropped: number; lost: number; arrived: number };
  sockets: { address: string; received: number; kernel_dropped: number; receive_buffer: number; errors: number }[];
  store: { appended: number; durable: number; lost: number; file_rows: number; files: number; file_bytes: number; memory_rows: number; recovered: number; torn_bytes: number; quarantined: Record<string, string>; failure: [number, string] | null };
}

export function HealthPage({ fail }: { fail: Fail }) {
  const [value, error] = useEvery<Health>("/api/v1/health", 2, fail);
  if (value === null) return <p role="alert" class="error">{error}</p>;
  const d = value.datagrams;
  const parts: [string, number, string][] = [["decoded", d.decoded, "#2e9e5b"], ["partly decoded", d.partly, "#b8901c"], ["waiting for a template", d.waiting, "#3f7fd4"], ["rejected", d.rejected, "#c2417c"]];
  const card = (name: string, n: number, bad = false) => <div class="card"><span class="dim">{name}</span><b class={bad && n > 0 ? "error" : ""}>{count(n)}</b></div>;
  return <>
    <h2>Where each datagram went</h2>
    {value.problems.length === 0 ? <p class="good">No problems since {when(value.started)}.</p> : <ul class="error">{value.problems.map((p) => <li>{p}</li>)}</ul>}
    <p>{count(d.received)} received = {parts.map(([name, n], i) => <>{i > 0 && " + "}<span class="swatch" style={{ background: parts[i]?.[2] }} />{count(n)} {name}</>)} {d.balance ? <span class="good">✓ balanced</span> : <span class="error">does not balance</span>}</p>
    {d.received > 0 && <div class="bar" role="img" aria-label={parts.map(([name, n]) => `${n} ${name}`).join(", ")}>{parts.map(([, n, color]) => <span style={{ background: color, width: `${100 * n / d.received}%` }} />)}</div>}
    <div class="cards" style={{ marginTop: "1rem" }}>
      {card("Lost on the way (sequence numbers)", d.lost, true)}{card("Dropped by the kernel", d.kernel_dropped, true)}{card("Rows decoded", value.rows)}
      {card("Rows safe on disk", value.store.durable)}{card("Rows in memory", value.store.memory_rows)}{card("Rows that could not be stored", value.store.lost, true)}
      {card("Parquet files", value.store.files)}{card("Bytes of files", value.store.file_bytes)}{card("Rows recovered at start", value.store.recovered)}
    </div>
    <h2>Sockets</h2>
    <table><thead><tr><th>Address</th>{["Received", "Dropped by the kernel", "Receive buffer", "Errors"].map((n) => <th class="n">{n}</th>)}</tr></thead>
      <tbody>{value.sockets.map((s) => <tr><td>{s.address}</td>{[s.received, s.kernel_dropped, s.receive_buffer, s.errors].map((n) => <td class="n">{count(n)}</td>)}</tr>)}</tbody></table>
    {(value.databases.length > 0 || Object.keys(value.sources).length > 0 || value.bmp !== null) && <><h2>Names</h2><ul>
      {value.databases.map((d) => <li>{d.path}: {d.kind}, built {when(d.built)}</li>)}
      {Object.entries(value.sources).map(([name, s]) => <li>{name}: {count(s.exporters)} exporters, {count(s.networks)} networks, read {when(s.read)}</li>)}
      {value.bmp !== null && <li>BMP: {value.bmp.sessions.length} sessions, {count(value.bmp.prefixes)} prefixes, {count(value.bmp.paths)} paths</li>}</ul></>}
    <p class="dim">weir-collector {value.version}, started {when(value.started)}</p><p role="alert" class="error">{error}</p>
  </>;
}

interface Alert { id: string; rule: string; key: Record<string, string>; filter: string; status: string; metric: string; above: number; rate: number; band: [number, number]; peak: number; began: number; ended: number | null; acknowledged: string | null; silenced: boolean }
interface AlertList { alerts: Alert[]; rules: { name: string; filter: string; by: string[]; metric: string; above: number; window: number; baseline: number | null }[]; deliveries: { destination: string; sent: number; failed: number; dropped: number }[]; silences: { id: string; rule: string | null; key: Record<string, string>; until: number; by: string; comment: string }[] }

export function AlertsPage({ fail, open }: { fail: Fail; open: (filter: string) => void }) {
  const [value, error, load] = useEvery<AlertList>("/api/v1/alerts", 2, fail);
  const [failed, setFailed] = useState("");
  if (value === null) return <p role="alert" class="error">{error}</p>;
  const silence = (a: Alert) => { call("/api/v1/silences", { rule: a.rule, key: a.key, minutes: 60 }).then(load, (e) => setFailed(fail(e))); };
  const unsilence = (id: string) => { call(`/api/v1/silences/${id}`, undefined, "DELETE").then(load, (e) => setFailed(fail(e))); };
  const acknowledge = (id: string) => { call(`/api/v1/alerts/${encodeURIComponent(id)}/acknowledge`, {}).then(load, (e) => setFailed(fail(e))); };
  return <>
    <h2>Alerts</h2>
    {value.alerts.length === 0 && <p class="good">No alert.</p>}
    {value.alerts.length > 0 && <div class="scroll" tabIndex={0}><table><thead><tr><th>Status</th><th>Rule</th><th>What</th><th class="n">Rate</th><th class="n">95 % band</th><th class="n">Threshold</th><th class="n">Peak</th><th>Began</th><th>Ended</th><th>Action</th></tr></thead>
      <tbody>{value.alerts.map((a) => <tr>
        <td class={a.status === "firing" ? "error" : "dim"}>{a.status}</td><td>{a.rule}</td><td>{Object.entries(a.key).map(([k, v]) => `${k} ${v}`).join(", ") || "all"}</td>
        <td class="n">{rate(a.rate, a.metric)}</td><td class="n">{rate(a.band[0], a.metric)} – {rate(a.band[1], a.metric)}</td><td class="n">{rate(a.above, a.metric)}</td><td class="n">{rate(a.peak, a.metric)}</td>
        <td>{when(a.began)}</td><td>{a.ended === null ? "" : when(a.ended)}</td>
        <td><button class="tiny" onClick={() => open(a.filter)}>explore</button>{" "}{a.status === "firing" && (a.acknowledged === null ? <button class="tiny" onClick={() => acknowledge(a.id)}>acknowledge</button> : `seen by ${a.acknowledged}`)}{" "}{a.status === "firing" && (a.silenced ? "silenced" : <button class="tiny" onClick={() => silence(a)}>silence for an hour</button>)}</td>
      </tr>)}</tbody></table></div>}
    <p class="error" role="alert">{failed || error}</p>
    {value.silences.length > 0 && <><h2>Silences</h2><ul>{value.silences.map((s) => <li>{s.rule ?? "every rule"} {Object.entries(s.key).map(([k, v]) => `${k} ${v}`).join(", ")} until {when(s.until)} by {s.by} {s.comment} <button class="tiny" onClick={() => unsilence(s.id)}>end</button></li>)}</ul></>}
    {value.deliveries.length > 0 && <><h2>Deliveries</h2><table><thead><tr><th>Destination</th><th class="n">Sent</th><th class="n">Failed</th><th class="n">Dropped</th></tr></thead>
      <tbody>{value.deliveries.map((d) => <tr><td>{d.destination}</td><td class="n">{count(d.sent)}</td><td class={d.failed > 0 ? "n error" : "n"}>{count(d.failed)}</td><td class={d.dropped > 0 ? "n error" : "n"}>{count(d.dropped)}</td></tr>)}</tbody></table></>}
    <h2>Rules</h2>
    {value.rules.length === 0 ? <p>No rule. Add one under <code>alerts:</code> in the configuration.</p> :
      <table><thead><tr><th>Name</th><th>Filter</th><th>Per</th><th class="n">Above</th><th class="n">Seconds</th></tr></thead>
        <tbody>{value.rules.map((r) => <tr><td>{r.name}</td><td><code>{r.filter || "(all)"}</code></td><td>{r.by.join(", ")}</td><td class="n">{rate(r.above, r.metric)}{r.baseline !== null && ` or usual + ${r.baseline} deviations`}</td><td class="n">{r.window}</td></tr>)}</tbody></table>}
  </>;
}
