import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'

// Maximum gzipped size of everything that the first view loads.
const maxFirstView = 80 * 1024

export interface PageAsset {
  /** File name without a folder. */
  name: string
  text: string
}

/** Returns the scripts and styles of the pages. The npm package ships them prebuilt. */
export async function buildAssets(): Promise<PageAsset[]> {
  return (await bundlePages()).assets
}

/** Bundles scripts and styles. Throws if the first view exceeds `maxFirstView`. The metafile names bundled packages. */
export async function bundlePages(): Promise<{ assets: PageAsset[]; metafile: Metafile }> {
  const { outputFiles, metafile } = await build({
    entryPoints: [path.join(import.meta.dirname, 'pages/main.tsx')],
    absWorkingDir: path.join(import.meta.dirname, '../..'),
    outdir: path.join(import.meta.dirname, 'pages'),
    bundle: true,
    format: 'esm',
    target: ['chrome109', 'firefox115', 'safari16.4'],
    // The console may run on a port without the other pages, so it bundles its own copy of the logo.
    loader: { '.svg': 'file' },
    assetNames: '[name]',
    minify: true,
    write: false,
    metafile: true,
    legalComments: 'none',
    logLevel: 'error',
  })
  const assets = outputFiles.map((file) => ({ name: path.basename(file.path), text: file.text }))
  const bytes = assets
    .filter(({ name }) => name !== 'mark.svg')
    .reduce((sum, { text }) => sum + gzipSync(text, { level: 9 }).length, 0)
  if (bytes > maxFirstView)
    throw new Error(
      `The console's first view has ${bytes} bytes gzipped, more than ${maxFirstView}`,
    )
  return { assets, metafile }
}
