// Makes page.js of the modules of the page: `node bundle.mjs ESBUILD FOLDER OUT`. Run by tests/page/bundle.py.
import { createRequire } from 'node:module';
import { relative, resolve } from 'node:path';

const [esbuild, folder, out] = process.argv.slice(2);
const { build } = createRequire(esbuild)('esbuild');

/** What open.js runs before, and what comes behind the first rows: the page has each of these once. */
const APART = ['js/session.js', 'js/asked_ahead.js', 'js/hmac.js', 'js/text/at_terminal.js', 'vendor/markdown-it.js'];

await build({
  entryPoints: [resolve(folder, 'js/main.js')],
  outfile: out,
  bundle: true,
  format: 'esm',
  target: 'es2023',
  charset: 'utf8',
  minify: true,
  legalComments: 'none',
  logLevel: 'error',
  plugins: [{
    name: 'apart',
    setup({ onResolve }) {
      onResolve({ filter: /^\./ }, ({ path, resolveDir }) => {
        const name = relative(folder, resolve(resolveDir, path)).replaceAll('\\', '/');
        return APART.includes(name) ? { path: `./${name}`, external: true } : undefined;
      });
    },
  }],
});
