import { createHash } from 'node:crypto'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** What a page may have to load for us, gzipped. */
export const maxGzipBytes = 45 * 1024

export interface SdkBundle {
  /** One ES module, minified. */
  source: Buffer
  gzipped: Buffer
  /** With its quotes. */
  etag: string
}

/** Bundles the browser SDK in memory. Throws when it has grown over `maxGzipBytes`. */
export async function bundleSdk(): Promise<SdkBundle> {
  const { outputFiles } = await build({
    entryPoints: [path.join(import.meta.dirname, 'sdk/index.ts')],
    bundle: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    write: false,
    legalComments: 'none',
    logLevel: 'error',
  })
  const source = Buffer.from(outputFiles[0]?.contents ?? [])
  const gzipped = gzipSync(source, { level: 9 })
  if (gzipped.length > maxGzipBytes)
    throw new Error(`The SDK has ${gzipped.length} bytes gzipped, more than ${maxGzipBytes}`)
  // Weak, because the plain and the gzipped bytes share it.
  const etag = `W/"${createHash('sha256').update(source).digest('base64url').slice(0, 22)}"`
  return { source, gzipped, etag }
}

if (import.meta.main) {
  const { source, gzipped } = await bundleSdk()
  console.log(`t.js: ${source.length} bytes, ${gzipped.length} gzipped (limit ${maxGzipBytes})`)
}
