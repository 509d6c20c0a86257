import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Metafile } from 'esbuild'
import { bundleForBrowsers } from '../../web/build-sdk.ts'
import { compileProject } from './compile-project.ts'

// The rest of the SDK is in one bundle, and its types are not public.
const modules = ['package.d.ts', 'api.d.ts', 'react.js', 'react.d.ts']

/** Writes the modules of the browser SDK's package, and their types. */
export async function buildBrowserPackage(folder: string): Promise<Metafile> {
  const { code, metafile } = await bundleForBrowsers('package.ts')
  for (const [name, text] of await compileProject('services/web/sdk', modules))
    await writeFile(path.join(folder, name), text)
  await writeFile(path.join(folder, 'package.js'), code)
  return metafile
}
