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

/** `name@version` of what is installed in production, other platforms' packages too. */
const locked = Object.entries<Locked>(lock.packages)
  .filter(([place, { dev }]) => place !== '' && dev !== true)
  .map(([place, { version }]) => `${place.split('node_modules/').at(-1)}@${version}`)

const options = { cwd: root, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 } as const
const text = execFileSync('npm', ['run', '--silent', 'sbom'], options)
const { metadata, components, dependencies } = sbom.parse(JSON.parse(text))
const named = new Set(components.map(({ name, version }) => `${name}@${version}`))

test('the SBOM is of this version', () => {
  expect(metadata.component.purl).toBe(`pkg:npm/tidegate@${manifest.version}`)
})

test('the SBOM names every dependency of production, and none of the tests', () => {
  expect(locked.length).toBeGreaterThan(100)
  expect([...named].sort()).toEqual([...new Set(locked)].sort())
  const own = { ...manifest.dependencies, ...manifest.optionalDependencies }
  for (const [name, version] of Object.entries(own)) expect(named).toContain(`${name}@${version}`)
  expect([...named].filter((one) => /^(vitest|typescript|@biomejs)/.test(one))).toEqual([])
})

test('the SBOM says for each what it needs of the others, and by which hash it is known', () => {
  const refs = new Set(dependencies.map(({ ref }) => ref))
  const needed = dependencies.flatMap(({ dependsOn }) => dependsOn)
  expect([...named, ...needed].filter((one) => !refs.has(one))).toEqual([])
  const unhashed = components.filter(
    ({ hashes = [] }) => !hashes.some(({ alg }) => alg === 'SHA-512'),
  )
  expect(unhashed.map(({ name }) => name)).toEqual([])
})
