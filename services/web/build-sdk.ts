import path from 'node:path'
import { build } from 'esbuild'

// Newer syntax is compiled for these browsers. A test makes sure that the SDK uses no newer built-ins.
const oldestBrowsers = ['chrome80', 'firefox78', 'safari14']

/** Bundles an entry of the browser SDK as one module for all supported browsers. */
export async function bundleForBrowsers(
  entry: 'index.ts' | 'package.ts' | 'collectors/questions.ts',
) {
  const { outputFiles, metafile } = await build({
    entryPoints: [path.join(import.meta.dirname, 'sdk', entry)],
    absWorkingDir: path.join(import.meta.dirname, '../..'),
    bundle: true,
    format: 'esm',
    target: oldestBrowsers,
    // All three support destructuring, except for a case in Safari 14 that the SDK does not use.
    supported: { destructuring: true },
    // A dependency uses `Object.hasOwn`, which Chromium before 93, Firefox before 92 and Safari before 15.4 lack.
    define: { 'Object.hasOwn': 'hasOwn' },
    inject: [path.join(import.meta.dirname, 'sdk/has-own.ts')],
    minify: true,
    // Makes Chromium compile all functions off the main thread instead of lazily.
    banner: { js: '//# allFunctionsCalledOnLoad' },
    write: false,
    metafile: true,
    legalComments: 'none',
    logLevel: 'error',
  })
  return { code: outputFiles[0]?.text ?? '', metafile }
}

/** Returns the source of /t.js. The npm package ships it prebuilt. */
export async function buildSdk(): Promise<string> {
  return (await bundleForBrowsers('index.ts')).code
}

/** Returns the module that answers engine questions, for `tidegate learn`. The npm package ships it prebuilt, too. */
export async function buildQuestions(): Promise<string> {
  return (await bundleForBrowsers('collectors/questions.ts')).code
}
