// The state of the explorer is the address line: readable, versioned, shareable.

export interface State {
  page: string; dimensions: string[]; filter: string; metric: string; graph: string; from: string; to: string; limit: number;
  both: boolean; previous: boolean; live: boolean; raw: boolean;
}

const DEFAULT: State = {
  page: "explorer", dimensions: ["SrcAddr"], filter: "", metric: "bits", graph: "stacked", from: "-1h", to: "now", limit: 10,
  both: false, previous: false, live: false, raw: false,
};

export function read(search: string): State {
  const p = new URLSearchParams(search);
  const list = p.get("q");
  const limit = Number(p.get("n") ?? DEFAULT.limit);
  return {
    page: p.get("p") ?? DEFAULT.page,
    dimensions: list === null ? DEFAULT.dimensions : list.split(",").filter((name) => name !== ""),
    filter: p.get("f") ?? "",
    metric: p.get("m") ?? DEFAULT.metric,
    graph: p.get("g") ?? DEFAULT.graph,
    from: p.get("from") ?? DEFAULT.from,
    to: p.get("to") ?? DEFAULT.to,
    limit: Number.isInteger(limit) && limit >= 1 && limit <= 50 ? limit : DEFAULT.limit,
    both: p.get("both") === "1",
    previous: p.get("prev") === "1",
    live: p.get("live") === "1",
    raw: p.get("raw") === "1",
  };
}

export function write(s: State): string {
  const p = new URLSearchParams({ v: "1" });
  const set = (name: string, value: string, usual: string) => { if (value !== usual) p.set(name, value); };
  set("p", s.page, DEFAULT.page);
  set("q", s.dimensions.join(","), DEFAULT.dimensions.join(","));
  set("f", s.filter, "");
  set("m", s.metric, DEFAULT.metric);
  set("g", s.graph, DEFAULT.graph);
  set("from", s.from, DEFAULT.from);
  set("to", s.to, DEFAULT.to);
  set("n", String(s.limit), String(DEFAULT.limit));
  set("both", s.both ? "1" : "", "");
  set("prev", s.previous ? "1" : "", "");
  set("live", s.live ? "1" : "", "");
  set("raw", s.raw ? "1" : "", "");
  return "?" + p.toString().replaceAll("%2C", ",");
}
