import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { supported } from '../support/supported-versions.ts'
import { readFile } from '../support/test-projects.ts'

const range = (versions: readonly [string, string], parts: number) =>
  versions.map((version) => version.split('.').slice(0, parts).join('.')).join(' to ')
const kafka = range(supported.kafka, 2)
const postgresql = range(supported.postgresql, 1)

test.each([
  'README.md',
  'docs/operate/deploying.md',
  'services/cli/package/README.md',
  'infra/deploy/compose.yaml',
  'infra/deploy/chart/values.yaml',
])('%s names the versions that are tested', (file) => {
  const text = readFile(file)
  expect(text).toContain(`PostgreSQL ${postgresql}`)
  expect(text).toContain(`Kafka ${kafka}`)
})

test.each([
  ['docs/operate/database.md', `PostgreSQL ${postgresql}`],
  ['docs/operate/kafka.md', `Kafka ${kafka}`],
])('%s names %s', (file, versions) => expect(readFile(file)).toContain(versions))

test.each([
  ['kafka', 'apache/kafka', supported.kafka],
  ['postgres', 'postgres', supported.postgresql],
] as const)(
  'compose.yaml starts a version of %s within them',
  (service, name, [oldest, newest]) => {
    const { services }: { services: Record<string, { image: string }> } = parse(
      readFile('infra/deploy/compose.yaml'),
    )
    const [image, tag = ''] = services[service]?.image.split(':') ?? []
    expect(image).toBe(name)
    expect(tag >= oldest && tag <= newest).toBe(true)
  },
)
