import { existsSync } from 'node:fs'
import path from 'node:path'
import type { PackageName } from './names.ts'

const compiler = path.resolve(import.meta.dirname, '../../../node_modules/.bin/tsc')

/**
 * Returns what gives each package of this version as npm installs it; undefined where they cannot be built, as in the
 * image. They are built from this clone. In the package `tidegate` another module stands in place of this file, because
 * the packages come with it.
 */
export function hostedPackages(): ((name: PackageName) => Promise<Buffer>) | undefined {
  if (!existsSync(compiler)) return undefined
  return async (name) => (await import('./build.ts')).packPackage(name)
}
