import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { z } from 'zod'
import manifest from '../../../package.json' with { type: 'json' }
import lock from '../../../package-lock.json' with { type: 'json' }
import { root } from '../../support/test-projects.ts'

const sbom = z.object({
  bomFormat: z.literal('CycloneDX'),
  specVersion: z.string().regex(/^1\.\d$/),
  serialNumber: z.string().regex(/^urn:uuid:/),
  metadata: z.object({ component: z.object({ type: z.literal('application'), purl: z.string() }) }),
  components: z.array(
    z.object({
      name: z.string(),
      version: z.string(),
      purl: z.string(),
      hashes: z.array(z.object({ alg: z.string(), content: z.string() })).optional(),
    }),
  ),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
})

interface Locked {
  version?: string
  dev?: boolean
}

/** `name@version` of all production packages in the lock file, for any platform. */
const locked = Object.entries<Locked>(lock.packages)
  .filter(([place, { dev }]) => place !== '' && dev !== true)
  .map(([place, { version }]) => `${place.split('node_modules/').at(-1)}@${version}`)

const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const
const text = execFileSync('npm', ['run', '--silent', 'sbom'], options)
const { metadata, components, dependencies } = sbom.parse(JSON.parse(text))
const named = new Set(components.map(({ name, version }) => `${name}@${version}`))

test('the SBOM has this version', () => {
  expect(metadata.component.purl).toBe(`pkg:npm/tidegate@${manifest.version}`)
})

test('the SBOM lists all production dependencies and no development ones', () => {
  expect(locked.length).toBeGreaterThan(100)
  expect([...named].sort()).toEqual([...new Set(locked)].sort())
  const own = { ...manifest.dependencies, ...manifest.optionalDependencies }
  for (const [name, version] of Object.entries(own)) expect(named).toContain(`${name}@${version}`)
  expect([...named].filter((name) => /^(vitest|typescript|@biomejs)/.test(name))).toEqual([])
})

test('the SBOM has dependencies and a hash for each package', () => {
  const refs = new Set(dependencies.map(({ ref }) => ref))
  const needed = dependencies.flatMap(({ dependsOn }) => dependsOn)
  expect([...named, ...needed].filter((ref) => !refs.has(ref))).toEqual([])
  const unhashed = components.filter(
    ({ hashes = [] }) => !hashes.some(({ alg }) => alg === 'SHA-512'),
  )
  expect(unhashed.map(({ name }) => name)).toEqual([])
})
