import { existsSync } from 'node:fs'
import path from 'node:path'
import type { PackageSource } from '../../web/packages.ts'

const compiler = path.resolve(import.meta.dirname, '../../../node_modules/.bin/tsc')

/**
 * Returns the source of the packages of this version; undefined if they cannot be built, as in the image. They are built from this clone. In the package `tidegate` another module stands in place of this file, because
 * the packages come with it.
 */
export function hostedPackages(): PackageSource | undefined {
  if (!existsSync(compiler)) return undefined
  return async (name) => (await import('./build.ts')).packPackage(name)
}
