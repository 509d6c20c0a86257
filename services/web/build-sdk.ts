import path from 'node:path'
import { build } from 'esbuild'

// What the SDK is written down to; a test looks for newer built-ins.
const oldestBrowsers = ['chrome80', 'firefox78', 'safari14']

/** An entry of the browser SDK as one module for every browser that it supports. */
export async function bundleForBrowsers(entry: 'index.ts' | 'package.ts' | 'collectors/questions.ts') {
  const { outputFiles, metafile } = await build({
    entryPoints: [path.join(import.meta.dirname, 'sdk', entry)],
    absWorkingDir: path.join(import.meta.dirname, '../..'),
    bundle: true,
    format: 'esm',
    target: oldestBrowsers,
    // All three read it, but for a corner of Safari 14 that is not met here.
    supported: { destructuring: true },
    // A package asks for it, and Chromium before 93, Firefox before 92 and Safari before 15.4 have it not.
    define: { 'Object.hasOwn': 'hasOwn' },
    inject: [path.join(import.meta.dirname, 'sdk/has-own.ts')],
    minify: true,
    write: false,
    metafile: true,
    legalComments: 'none',
    logLevel: 'error',
  })
  return { code: outputFiles[0]?.text ?? '', metafile }
}

// A package of the program brings what they return instead of this file.

/** The source of /t.js. */
export async function buildSdk(): Promise<string> {
  return (await bundleForBrowsers('index.ts')).code
}

/** A module that answers questions about the engine, for `tidegate learn`. */
export async function buildQuestions(): Promise<string> {
  return (await bundleForBrowsers('collectors/questions.ts')).code
}
