import { execFile } from 'node:child_process'
import { copyFile, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import { parse } from 'yaml'
import { settingNames } from '../../../infra/config.ts'
import { readServerSettings } from '../../../services/cli/server-settings.ts'
import { allRoles } from '../../../services/server/roles.ts'
import { root } from '../../support/test-projects.ts'

const run = promisify(execFile)
const deploy = path.join(root, 'infra/deploy')

interface Service {
  image: string
  command?: string[]
  environment?: Record<string, string>
  secrets?: string[]
  profiles?: string[]
  healthcheck?: { test?: string[]; disable?: boolean }
  depends_on?: Record<string, { condition: string }>
  volumes?: string[]
  read_only?: boolean
}

interface Compose {
  services: Record<string, Service>
  secrets: Record<string, { file: string }>
  volumes: Record<string, null>
}

const conditionsOf = ({ depends_on = {} }: Service) =>
  Object.fromEntries(Object.entries(depends_on).map(([name, { condition }]) => [name, condition]))

const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-secrets-'))
await copyFile(path.join(deploy, 'make-secrets'), path.join(folder, 'make-secrets'))
await run(path.join(folder, 'make-secrets'))
const compose: Compose = parse(await readFile(path.join(deploy, 'compose.yaml'), 'utf8'), {
  merge: true,
})
afterAll(() => rm(folder, { recursive: true }))

/** Returns a service's environment with the defaults of the file, and secrets at their paths on this machine. */
function environmentOf({ environment = {}, secrets = [] }: Service): Record<string, string> {
  const mounted = secrets.map((name) => [
    `/run/secrets/${name}`,
    path.join(folder, String(compose.secrets[name]?.file)),
  ])
  const fileAt = new Map(mounted.map(([target = '', file = '']) => [target, file]))
  const entries = Object.entries(environment).map(([name, value]) => [
    name,
    name.endsWith('_FILE') ? (fileAt.get(value) ?? `${value} is not mounted`) : defaultOf(value),
  ])
  return Object.fromEntries(entries)
}

const serviceOf = (name: string): Service => {
  const service = compose.services[name]
  if (!service) throw new Error(`there is no service ${name}`)
  return service
}

it('make-secrets creates the secrets of compose.yaml, once', async () => {
  const files = Object.values(compose.secrets).map(({ file }) => path.basename(file))
  expect((await readdir(path.join(folder, 'secrets'))).sort()).toEqual(files.sort())
  const contents = () =>
    Promise.all(files.map((file) => readFile(path.join(folder, 'secrets', file), 'utf8')))
  const before = await contents()
  await run(path.join(folder, 'make-secrets'))
  expect(await contents()).toEqual(before)
  expect(new Set(before).size).toBe(files.length)
  expect((await stat(path.join(folder, 'secrets'))).mode & 0o077).toBe(0)
})

it.each(allRoles)(
  'compose.yaml starts the role %s with valid settings after the migration',
  async (role) => {
    const service = serviceOf(role)
    expect(service.command).toEqual(['serve', '--roles', role])
    expect(service.read_only).toBe(true)
    const env = environmentOf(service)
    const { config, warnings } = await readServerSettings({ env, roles: role })
    expect(warnings).toEqual([])
    const database = /^postgres:\/\/tidegate:[0-9a-f]{36}@postgres:5432\/tidegate$/
    expect(config).toMatchObject({
      KAFKA_BROKERS: [expect.stringMatching(/^kafka:\d+$/)],
      DATABASE_URL: expect.stringMatching(database),
    })
    expect(conditionsOf(service)).toEqual({ migrate: 'service_completed_successfully' })
  },
)

it('compose.yaml migrates once Postgres and Kafka are healthy, without master keys', async () => {
  const migrate = serviceOf('migrate')
  expect(migrate.command).toEqual(['migrate'])
  expect(conditionsOf(migrate)).toEqual({ postgres: 'service_healthy', kafka: 'service_healthy' })
  const [own, ofRole] = [environmentOf(migrate), environmentOf(serviceOf('api'))]
  expect(ofRole).toMatchObject(own)
  expect(own).not.toHaveProperty('TIDEGATE_MASTER_KEYS_FILE')
  for (const store of ['postgres', 'kafka'])
    expect(serviceOf(store).healthcheck?.test?.[0]).toBe('CMD')
})

it('compose.yaml sets only known settings', () => {
  const ours = [...allRoles, 'migrate', 'single']
  const names = ours.flatMap((name) => Object.keys(serviceOf(name).environment ?? {}))
  expect(names.filter((name) => !settingNames.includes(name.replace(/_FILE$/, '')))).toEqual([])
})

it('compose.yaml starts the proxy once every role is healthy', () => {
  expect(conditionsOf(serviceOf('proxy'))).toEqual(
    Object.fromEntries(allRoles.map((role) => [role, 'service_healthy'])),
  )
})

it('compose.yaml starts the single container only on request', () => {
  const single = serviceOf('single')
  expect(single).toMatchObject({
    command: ['dev'],
    profiles: ['single'],
    read_only: true,
    volumes: ['single:/data'],
  })
  expect(conditionsOf(single)).toEqual({})
  const others = Object.entries(compose.services).filter(([name]) => name !== 'single')
  expect(others.filter(([, { profiles }]) => profiles)).toEqual([])
})

it('compose.yaml stores data only in named volumes', () => {
  const mounted = Object.values(compose.services).flatMap(({ volumes = [] }) =>
    volumes.map((volume) => volume.split(':')[0]),
  )
  expect(mounted.filter((name) => !name?.startsWith('./')).sort()).toEqual(
    Object.keys(compose.volumes).sort(),
  )
})

/** Replaces `${NAME:-default}` by its default, which may contain another one. */
function defaultOf(text: string): string {
  const inner = text.replace(/\$\{\w+:-([^${}]*)\}/g, '$1')
  return inner === text ? text : defaultOf(inner)
}
