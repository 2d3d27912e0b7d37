// Numbers as people read them.

const UNITS = ["", "k", "M", "G", "T", "P"];

function scaled(value: number): string {
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < UNITS.length - 1) { value /= 1000; unit++; }
  const digits = value === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit] ?? ""}`;
}

const NAMES: Record<string, string> = { bits: "bit/s", l2bits: "bit/s", packets: "pkt/s", flows: "rec/s", discards: "drop/s" };

export const rate = (value: number, metric: string) => scaled(value) + (NAMES[metric] ?? "/s");
export const total = (value: number, metric: string) => scaled(value) + (metric.endsWith("bits") ? "B" : "");
export const count = (value: number) => value.toLocaleString("en");
export const when = (seconds: number) => seconds === 0 ? "never" : new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
