// The page's files have names that stay, so that a change of the sources shows as a change of few committed files.
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// The page is at / and at /console, perhaps below a path of an application: its files are named from there.
const relative: Plugin = {
  name: "relative",
  enforce: "post",
  transformIndexHtml: { order: "post", handler: (page) => page.replaceAll('"/console/', '"console/') },
};

export default defineConfig({
  plugins: [relative],
  root: here("."),
  base: "/console/",
  publicDir: here("public"),
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  build: {
    outDir: here("../src/trivium/console"),
    emptyOutDir: true,
    target: "es2022",
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rollupOptions: {
      output: {
        inlineDynamicImports: true,
        entryFileNames: "console.js",
        assetFileNames: (asset) => (asset.names[0]?.endsWith(".css") ? "console.css" : "[name][extname]"),
      },
    },
  },
});
