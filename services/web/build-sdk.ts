import path from 'node:path'
import { build } from 'esbuild'

// Syntax is translated for these. A test fails for built-ins that they do not have.
const oldestBrowsers = ['chrome80', 'firefox78', 'safari14']

/** An entry of the browser SDK as one module for every browser that it supports. */
export async function bundleForBrowsers(
  entry: 'index.ts' | 'package.ts' | 'collectors/questions.ts',
) {
  const { outputFiles, metafile } = await build({
    entryPoints: [path.join(import.meta.dirname, 'sdk', entry)],
    absWorkingDir: path.join(import.meta.dirname, '../..'),
    bundle: true,
    format: 'esm',
    target: oldestBrowsers,
    // All three support it, except for a case in Safari 14 that does not occur here.
    supported: { destructuring: true },
    // A package uses it, and Chromium before 93, Firefox before 92 and Safari before 15.4 do not have it.
    define: { 'Object.hasOwn': 'hasOwn' },
    inject: [path.join(import.meta.dirname, 'sdk/has-own.ts')],
    minify: true,
    // Chromium compiles the functions beside the page's thread then, and not one by one as they are called.
    banner: { js: '//# allFunctionsCalledOnLoad' },
    write: false,
    metafile: true,
    legalComments: 'none',
    logLevel: 'error',
  })
  return { code: outputFiles[0]?.text ?? '', metafile }
}

/** The source of /t.js. The npm package of the program contains what this returns, in place of this file. */
export async function buildSdk(): Promise<string> {
  return (await bundleForBrowsers('index.ts')).code
}

/** A module that answers questions about the engine, for `tidegate learn`; packaged likewise. */
export async function buildQuestions(): Promise<string> {
  return (await bundleForBrowsers('collectors/questions.ts')).code
}
