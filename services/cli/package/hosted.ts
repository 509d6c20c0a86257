import { existsSync } from 'node:fs'
import path from 'node:path'
import type { PackageSource } from '../../web/packages.ts'

const compiler = path.resolve(import.meta.dirname, '../../../node_modules/.bin/tsc')

/**
 * Returns a source that builds the packages of this version from the clone; undefined if it has no compiler, as in the
 * container image. The package `tidegate` bundles the SDK packages, so its build replaces this module.
 */
export function hostedPackages(): PackageSource | undefined {
  if (!existsSync(compiler)) return undefined
  return async (name) => (await import('./build.ts')).packPackage(name)
}
