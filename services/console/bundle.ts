import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'

// Bytes, gzipped, of what the first view loads.
const maxFirstView = 80 * 1024

export interface PageAsset {
  /** Without a folder. */
  name: string
  text: string
}

/** The scripts and styles of the pages. The npm package of the program contains them in place of this file. */
export async function buildPages(): Promise<PageAsset[]> {
  return (await bundlePages()).assets
}

/**
 * Bundles `main.js`, `main.css` and what they load later. Throws where the first view has grown over `maxFirstView`. The
 * metafile names the packages whose licences go along.
 */
export async function bundlePages(): Promise<{ assets: PageAsset[]; metafile: Metafile }> {
  const { outputFiles, metafile } = await build({
    entryPoints: [path.join(import.meta.dirname, 'pages/main.tsx')],
    absWorkingDir: path.join(import.meta.dirname, '../..'),
    outdir: path.join(import.meta.dirname, 'pages'),
    bundle: true,
    splitting: true,
    format: 'esm',
    target: ['chrome109', 'firefox115', 'safari16.4'],
    // The console may be on a port where nothing else is.
    loader: { '.svg': 'file' },
    assetNames: '[name]',
    minify: true,
    write: false,
    metafile: true,
    legalComments: 'none',
    logLevel: 'error',
  })
  const assets = outputFiles.map((file) => ({ name: path.basename(file.path), text: file.text }))
  const first = firstViewBytes(assets)
  if (first > maxFirstView)
    throw new Error(
      `The console's first view has ${first} bytes gzipped, more than ${maxFirstView}`,
    )
  return { assets, metafile }
}

// What is loaded before anything is shown: the script and what it imports, and the styles.
function firstViewBytes(assets: PageAsset[]): number {
  const entry = assets.find(({ name }) => name === 'main.js')?.text ?? ''
  const isFirst = ({ name }: PageAsset) =>
    name.startsWith('main.') ||
    ['from', 'import'].some((word) => entry.includes(`${word}"./${name}"`))
  return assets
    .filter(isFirst)
    .reduce((sum, { text }) => sum + gzipSync(text, { level: 9 }).length, 0)
}

if (import.meta.main) {
  const assets = await buildPages()
  for (const { name, text } of assets)
    console.log(`${name}: ${text.length} bytes, ${gzipSync(text).length} gzipped`)
  console.log(`first view: ${firstViewBytes(assets)} bytes gzipped (limit ${maxFirstView})`)
}
