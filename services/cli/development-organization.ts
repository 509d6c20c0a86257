import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { findOrganizationBySlug } from '../../projections/organizations/queries.ts'
import type { Environment } from '../../schemas/events.ts'
import type { KeyRequest } from '../organizations/checked-input.ts'
import { changeOrganization, createOrganization, issueApiKey } from '../organizations/commands.ts'
import { setDataPolicy } from '../organizations/data-policies.ts'
import { decideCapability } from '../organizations/decide-organization.ts'
import type { Core } from '../server/dependencies.ts'
import { type DevelopmentCredentials, type EnvironmentKeys, writePrivate } from './credentials.ts'
import { asOperator } from './operator/operate.ts'

type OperatorCore = ReturnType<typeof asOperator>

const slug = 'development'
const fileName = 'credentials.json'

/**
 * The development organization's keys: those in credentials.json, and new ones for what is not in it (a secret key
 * cannot be printed twice). They are made by the commands that the API uses.
 */
export async function developmentCredentials({
  core,
  dataDir,
  baseUrl,
}: {
  core: Core
  dataDir: string
  baseUrl: string
}): Promise<DevelopmentCredentials> {
  const file = path.join(dataDir, fileName)
  const known: StoredCredentials = existsSync(file) ? JSON.parse(await readFile(file, 'utf8')) : {}
  const credentials = isComplete(known) ? known : await completed(asOperator(core, 'dev'), known)
  await writePrivate({
    dataDir,
    name: fileName,
    text: `${JSON.stringify({ ...credentials, base_url: baseUrl }, null, 2)}\n`,
  })
  return { ...credentials, base_url: baseUrl }
}

type Issued = Omit<DevelopmentCredentials, 'base_url'>

// Less than all where an earlier start was stopped between two keys.
interface StoredCredentials {
  organization_id?: string
  live?: Partial<EnvironmentKeys>
  test?: Partial<EnvironmentKeys>
}

function isComplete(known: StoredCredentials): known is Issued {
  const has = (keys: Partial<EnvironmentKeys> = {}) =>
    Object.keys(keyKinds).every((name) => name in keys)
  return known.organization_id !== undefined && has(known.live) && has(known.test)
}

async function completed(
  core: OperatorCore,
  { organization_id, live, test }: StoredCredentials,
): Promise<Issued> {
  const organizationId = organization_id ?? (await developmentOrganization(core))
  await changeOrganization(core, organizationId, (organization, at) =>
    decideCapability(organization, { capability: 'ip_rotation', enabled: true, ...at }),
  )
  if (core.config.KAFKA_BROKERS.length > 0)
    await setDataPolicy(core, { organizationId, changes: { facts_topic: true } })
  return {
    organization_id: organizationId,
    live: await completedKeys(live, core, { organizationId, environment: 'live' }),
    test: await completedKeys(test, core, { organizationId, environment: 'test' }),
  }
}

async function developmentOrganization(core: OperatorCore): Promise<string> {
  const known = await findOrganizationBySlug(core.pool, slug)
  return known?.id ?? (await createOrganization(core, { name: 'Development', slug })).organizationId
}

const keyKinds = {
  publishable_key: { type: 'publishable' },
  secret_key: { type: 'secret', scopes: ['*'] },
  ios_publishable_key: { type: 'publishable', client_target: 'native_ios' },
  android_publishable_key: { type: 'publishable', client_target: 'native_android' },
} satisfies Record<keyof EnvironmentKeys, Pick<KeyRequest, 'type' | 'scopes' | 'client_target'>>

async function completedKeys(
  known: Partial<EnvironmentKeys> = {},
  core: OperatorCore,
  { organizationId, environment }: { organizationId: string; environment: Environment },
): Promise<EnvironmentKeys> {
  const issue = {
    organizationId,
    environment,
    name: `Development ${environment}`,
    by: 'operator',
  } as const
  const key = async (name: keyof EnvironmentKeys) =>
    known[name] ?? (await issueApiKey(core, { ...issue, ...keyKinds[name] })).revealedKey
  return {
    publishable_key: await key('publishable_key'),
    secret_key: await key('secret_key'),
    ios_publishable_key: await key('ios_publishable_key'),
    android_publishable_key: await key('android_publishable_key'),
  }
}
