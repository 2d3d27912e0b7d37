// The console: pages, login, theme, and the address line as state.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, call } from "./api";
import { Explorer } from "./explorer";
import { DropsPage } from "./drops";
import { AlertsPage, ExportersPage, HealthPage } from "./pages";
import { type State, read, write } from "./state";
import "./style.css";

const PAGES = [["explorer", "Explorer"], ["drops", "Drops"], ["exporters", "Exporters"], ["health", "Health"], ["alerts", "Alerts"]] as const;

function App() {
  const [state, setState] = useState<State>(read(location.search));
  const [user, setUser] = useState<{ name: string; role: string } | null | undefined>(undefined);
  const [dark, setDark] = useState((localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark");
  // Before the graph reads its colours.
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  const set = (change: Partial<State>) => setState((before) => {
    const after = { ...before, ...change };
    history.pushState(null, "", write(after));
    return after;
  });
  useEffect(() => {
    const back = () => setState(read(location.search));
    addEventListener("popstate", back);
    call<{ name: string; role: string }>("/api/v1/session").then(setUser, () => setUser(null));
    return () => removeEventListener("popstate", back);
  }, []);
  const fail = (error: unknown): string => {
    if (error instanceof ApiError && error.status === 401) setUser(null);
    return error instanceof Error ? error.message : String(error);
  };
  if (user === undefined) return null;
  if (user === null) return <Login done={setUser} />;
  const theme = () => { localStorage.setItem("theme", dark ? "light" : "dark"); setDark(!dark); };
  const logout = () => { call("/api/v1/logout", {}).finally(() => setUser(null)); };
  return <>
    <header>
      <h1>Weir collector</h1>
      <nav aria-label="Pages">{PAGES.map(([page, name]) => <button class={state.page === page ? "on" : ""} aria-current={state.page === page ? "page" : undefined} onClick={() => set({ page })}>{name}</button>)}</nav>
      <span class="space" />
      <span class="dim">{user.name} ({user.role})</span>
      {user.name !== "local" && <button onClick={logout}>Log out</button>}
      <button onClick={theme} aria-label={dark ? "Use light colours" : "Use dark colours"}>{dark ? "☀" : "☾"}</button>
    </header>
    <main>
      {state.page === "drops" ? <DropsPage state={state} set={set} dark={dark} fail={fail} /> : state.page === "exporters" ? <ExportersPage fail={fail} /> : state.page === "health" ? <HealthPage fail={fail} />
        : state.page === "alerts" ? <AlertsPage fail={fail} open={(filter) => set({ page: "explorer", filter, from: "-15m", to: "now" })} />
        : <Explorer state={state} set={set} dark={dark} fail={fail} />}
    </main>
  </>;
}

function Login({ done }: { done: (user: { name: string; role: string }) => void }) {
  const [error, setError] = useState("");
  const [oidc, setOidc] = useState(false);
  useEffect(() => { call<{ oidc: boolean }>("/api/v1/login").then((found) => setOidc(found.oidc), () => setOidc(false)); }, []);
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    call<{ name: string; role: string }>("/api/v1/login", { name: form.get("name"), password: form.get("password") }).then(done, (e) => setError(e instanceof Error ? e.message : String(e)));
  };
  return <main class="login"><h1>Weir collector</h1><form onSubmit={submit}>
    <label>Name<input name="name" autocomplete="username" required /></label>
    <label>Password<input name="password" type="password" autocomplete="current-password" required /></label>
    <button>Log in</button>{" "}{oidc && <a href="/api/v1/oidc/login">Log in with the identity provider</a>}<p class="error" role="alert">{error}</p>
  </form></main>;
}

const app = document.getElementById("app");
if (app !== null) render(<App />, app);
