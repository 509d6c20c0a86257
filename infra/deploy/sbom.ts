import { execFileSync } from 'node:child_process'

interface Sbom {
  metadata: { component: { 'bom-ref': string } }
  components: { 'bom-ref': string; properties: { name: string }[] }[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

/** A CycloneDX SBOM of what production needs, from the lock file, as npm writes it. */
export function productionSbom(): Sbom {
  const args = ['sbom', '--package-lock-only', '--sbom-type=application', '--sbom-format=cyclonedx']
  const text = execFileSync('npm', args, {
    cwd: `${import.meta.dirname}/../..`,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  return withoutDevelopment(JSON.parse(text))
}

// npm's own --omit=dev leaves out what development needs, too, such as undici.
function withoutDevelopment(whole: Sbom): Sbom {
  const components = whole.components.filter(
    ({ properties }) => !properties.some(({ name }) => name === 'cdx:npm:package:development'),
  )
  const included = new Set([whole.metadata.component, ...components].map((one) => one['bom-ref']))
  const dependencies = whole.dependencies
    .filter(({ ref }) => included.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => included.has(one)) }))
  return { ...whole, components, dependencies }
}

if (import.meta.main) console.log(JSON.stringify(productionSbom(), null, 2))
