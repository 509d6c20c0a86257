import { existsSync } from 'node:fs'
import path from 'node:path'
import type { PackageSource } from '../../web/packages.ts'

const compiler = path.resolve(import.meta.dirname, '../../../node_modules/.bin/tsc')

/**
 * Returns a source that builds the packages from the clone; undefined without a TypeScript compiler, as in the container
 * image. The build of the package `tidegate` replaces this module with one that serves the bundled SDK packages.
 */
export function hostedPackages(): PackageSource | undefined {
  if (!existsSync(compiler)) return undefined
  return async (name) => (await import('./build.ts')).packageTarball(name)
}
