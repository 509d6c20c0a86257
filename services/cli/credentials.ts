import { existsSync } from 'node:fs'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { findOrganizationBySlug } from '../../projections/organizations/queries.ts'
import type { Environment } from '../../schemas/events.ts'
import { createOrganization, issueApiKey } from '../organizations/commands.ts'
import type { Core } from '../server/dependencies.ts'

/** Where a running `tidegate dev` keeps its files: DATA_DIR. */
export const dataDirectory = (): string => process.env.DATA_DIR || '.tidegate'

export async function readCredentials(): Promise<DevelopmentCredentials | undefined> {
  const file = path.join(dataDirectory(), 'credentials.json')
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : JSON.parse(text)
}

export function given(value: string | undefined, flag: string): string {
  if (value) return value
  throw new Error(
    `${flag} is not given and there is no credentials.json in DATA_DIR (is tidegate dev running?)`,
  )
}

export interface EnvironmentKeys {
  publishable_key: string
  secret_key: string
}

export interface DevelopmentCredentials {
  base_url: string
  organization_id: string
  live: EnvironmentKeys
  test: EnvironmentKeys
}

const slug = 'development'
const fileName = 'credentials.json'

interface DevelopmentOptions {
  core: Core
  dataDir: string
  baseUrl: string
}

/**
 * The development organization's keys: those in credentials.json, or new ones when there is no such file (a
 * secret key cannot be shown twice). Made by the deciders that the API uses.
 */
export async function developmentCredentials({
  core,
  dataDir,
  baseUrl,
}: DevelopmentOptions): Promise<DevelopmentCredentials> {
  const file = path.join(dataDir, fileName)
  const known = existsSync(file) ? JSON.parse(await readFile(file, 'utf8')) : await issueCredentials(core)
  const credentials: DevelopmentCredentials = { ...known, base_url: baseUrl }
  await writePrivate({ dataDir, name: fileName, text: `${JSON.stringify(credentials, null, 2)}\n` })
  return credentials
}

async function issueCredentials(core: Core): Promise<Omit<DevelopmentCredentials, 'base_url'>> {
  const known = await findOrganizationBySlug(core.pool, slug)
  const organizationId =
    known?.id ?? (await createOrganization(core, { name: 'Development', slug })).organizationId
  const pair = async (environment: Environment): Promise<EnvironmentKeys> => {
    const issue = { organizationId, environment, name: `Development ${environment}`, by: 'operator' } as const
    const publishable = await issueApiKey(core, { ...issue, type: 'publishable' })
    const secret = await issueApiKey(core, { ...issue, type: 'secret', scopes: ['*'] })
    return { publishable_key: publishable.revealedKey, secret_key: secret.revealedKey }
  }
  return { organization_id: organizationId, live: await pair('live'), test: await pair('test') }
}

export async function writePrivate({ dataDir, name, text }: { dataDir: string; name: string; text: string }) {
  await mkdir(dataDir, { recursive: true })
  const file = path.join(dataDir, name)
  await writeFile(file, text, { mode: 0o600 })
  await chmod(file, 0o600)
}
