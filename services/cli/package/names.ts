export type PackageName = 'tidegate' | 'browser' | 'server'

/** Returns the file's name as npm would choose it. */
export const fileOf = (name: PackageName, version: string): string =>
  name === 'tidegate' ? `tidegate-${version}.tgz` : `tidegate-${name}-${version}.tgz`
