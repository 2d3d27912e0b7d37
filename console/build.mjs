// Builds dist/ from src/. The result is committed and compiled into weir-collector, so that cargo needs no npm.
// The same sources and the locked versions give the same bytes: `npm run build` and `git diff --exit-code dist` check it.
import { build } from "esbuild";
import { copyFileSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

await build({
  entryPoints: { console: "src/main.tsx" },
  bundle: true,
  minify: true,
  legalComments: "inline",
  target: "es2022",
  format: "esm",
  outdir: "dist",
  jsx: "automatic",
  jsxImportSource: "preact",
});
copyFileSync("src/index.html", "dist/index.html");
const size = ["index.html", "console.js", "console.css"]
  .map((file) => gzipSync(readFileSync(`dist/${file}`)).length)
  .reduce((a, b) => a + b);
console.log(`first load: ${(size / 1000).toFixed(1)} kB gzip`);
if (size > 60_000) throw new Error("first load is above 60 kB gzip");
