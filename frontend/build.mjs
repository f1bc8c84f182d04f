// Bundle the views and their style sheet as one ES module into the Python package. `node build.mjs --out FILE` writes to FILE instead.
import { build } from "esbuild";
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";

const LIMIT = 150_000; // bytes, gzipped
const asked = process.argv.indexOf("--out");
const outfile = asked > 0 ? process.argv[asked + 1] : fileURLToPath(new URL("../src/headscope/views/headscope.js", import.meta.url));

await build({
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  entryPoints: ["src/main.tsx"],
  outfile,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
  loader: { ".css": "text" },
  banner: { js: "/* headscope's views. Built from frontend/ by `make bundle`; edit there. Contains Preact (MIT) and d3 modules (ISC). */" },
});

const size = gzipSync(readFileSync(outfile), { level: 9 }).length;
console.log(`${outfile}: ${size} bytes gzipped`);
if (size > LIMIT) {
  console.error(`the bundle is over ${LIMIT} bytes gzipped`);
  process.exit(1);
}
