import type { PackageName } from './names.ts'

/**
 * Returns a package of this version as npm installs it. It is built from this clone; in the package `tidegate` another
 * module stands in place of this file, because the packages come with it.
 */
export async function hostedPackage(name: PackageName): Promise<Buffer> {
  const { packPackage } = await import('./build.ts')
  return packPackage(name)
}
