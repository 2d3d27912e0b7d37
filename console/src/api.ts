// Calls of the API, version 1, and the types of its answers.

export interface Row {
  key: string[]; literal: string[]; role: "row" | "other" | "total"; axis: number; total: number; band: [number, number] | null;
  samples: number; tied: boolean; average: number; min: number; max: number; last: number; p95: number; points: number[]; half: number[];
}
export interface Answer {
  from: number; to: number; step: number; metric: string; dimensions: string[]; times: number[]; rows: Row[]; more: boolean;
  coverage: { percent: number | null; formats: { format: string; percent: number; lost: number }[]; received: number; rejected: number; lossy: [string, number][] };
  resolution: string; named_percent: number | null; stored_rows: number; unknown_rate_rows: number; sql: string[]; milliseconds: number;
}
export interface Live { from: number; to: number; rows: { key: string[]; points: number[]; total: number }[] }
export interface Dimension { name: string; help: string; kind: string; swap: string }

export class ApiError extends Error {
  constructor(readonly status: number, message: string) { super(message); }
}

export async function call<T>(path: string, body?: unknown, method = body === undefined ? "GET" : "POST"): Promise<T> {
  const options: RequestInit = method === "GET" ? {} : {
    method, headers: { "content-type": "application/json", "x-weir": "1" }, ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
  const response = await fetch(path, options);
  const text = await response.text();
  if (!response.ok) {
    let message = text;
    try { message = (JSON.parse(text) as { error: string }).error; } catch { /* not JSON: the text says it */ }
    throw new ApiError(response.status, message);
  }
  return (text === "" ? undefined : JSON.parse(text)) as T;
}
