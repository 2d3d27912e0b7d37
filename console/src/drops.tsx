// Why packets were dropped: by reason, by interface, by destination.

import { useEffect, useState } from "preact/hooks";
import { type Answer, call } from "./api";
import { total } from "./format";
import { Sankey } from "./sankey";
import type { State } from "./state";

interface Props { state: State; set: (change: Partial<State>) => void; dark: boolean; fail: (error: unknown) => string }

const FILTER = "Outcome LIKE 'dropped:%'";

function Top({ title, dimensions, metric, state, set, fail }: Omit<Props, "dark"> & { title: string; dimensions: string[]; metric: string }) {
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [error, setError] = useState("");
  const line = new URLSearchParams({ from: state.from, to: state.to, dimensions: dimensions.join(","), filter: FILTER, metric, limit: "10", points: "0" }).toString();
  useEffect(() => { call<Answer>(`/api/v1/query?${line}`).then((found) => { setAnswer(found); setError(""); }, (e) => setError(fail(e))); }, [line]);
  const rows = answer?.rows.filter((row) => row.role !== "total" && row.total > 0) ?? [];
  return <section class="card"><h2>{title}</h2><p class="error" role="alert">{error}</p>
    {answer === null && error === "" && <p class="dim">Loading…</p>}
    {answer !== null && rows.length === 0 && <p class="good">None.</p>}
    {rows.length > 0 && <table><tbody>{rows.map((row) => <tr><td>{row.key.map((part) => part === "" ? "(none)" : part).join(" · ")}</td><td class="n">{total(row.total, metric)}</td></tr>)}</tbody></table>}
    {rows.length > 0 && <button class="tiny" onClick={() => set({ page: "explorer", dimensions, filter: FILTER, metric })}>explore</button>}
    {dimensions.length > 2 && rows.length > 0 && answer !== null && <Sankey rows={answer.rows} dimensions={answer.dimensions} metric={metric} />}
  </section>;
}

export function DropsPage(props: Props) {
  const top = (title: string, dimensions: string[], metric: string) => <Top title={title} dimensions={dimensions} metric={metric} state={props.state} set={props.set} fail={props.fail} />;
  return <>
    <h2>Why packets were dropped</h2>
    <p class="dim">Notifications (sFlow 0:5) are not samples: routers limit their rate, so they say why and who, not how many. Sampled packets that were dropped are estimates.</p>
    <div class="pair">
      {top("Notifications by reason", ["Outcome"], "discards")}
      {top("Sampled and recorded packets by reason", ["Outcome"], "packets")}
      {top("Notifications by input interface", ["ExporterName", "InIfName"], "discards")}
      {top("Notifications by destination", ["DstAddr", "DstPort"], "discards")}
    </div>
    {top("From interface to reason", ["ExporterName", "InIfName", "Outcome"], "discards")}
  </>;
}
