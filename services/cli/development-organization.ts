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
import { asOperator } from './operator/run.ts'

type OperatorCore = ReturnType<typeof asOperator>

const slug = 'development'
const fileName = 'credentials.json'

/**
 * Returns the development organization's credentials: those in credentials.json or, without the file, newly issued keys,
 * because a secret key cannot be read back.
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
  const keys = existsSync(file) ? await readKeys(file) : await issueAllKeys(asOperator(core, 'dev'))
  const credentials = { ...keys, base_url: baseUrl }
  const text = `${JSON.stringify(credentials, null, 2)}\n`
  await writePrivate({ dataDir, name: fileName, text })
  return credentials
}

type IssuedKeys = Omit<DevelopmentCredentials, 'base_url'>

async function readKeys(file: string): Promise<IssuedKeys> {
  const text = await readFile(file, 'utf8')
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(`${file} is not valid JSON: delete it and restart to issue new keys`, { cause })
  }
}

async function issueAllKeys(core: OperatorCore): Promise<IssuedKeys> {
  const organizationId = await developmentOrganization(core)
  await changeOrganization(core, organizationId, (organization, at) =>
    decideCapability(organization, { capability: 'ip_rotation', enabled: true, ...at }),
  )
  if (core.config.KAFKA_BROKERS.length > 0)
    await setDataPolicy(core, { organizationId, changes: { facts_topic: true } })
  return {
    organization_id: organizationId,
    live: await issueKeys(core, { organizationId, environment: 'live' }),
    test: await issueKeys(core, { organizationId, environment: 'test' }),
  }
}

async function developmentOrganization(core: OperatorCore): Promise<string> {
  const organization = await findOrganizationBySlug(core.pool, slug)
  return (
    organization?.id ??
    (await createOrganization(core, { name: 'Development', slug })).organizationId
  )
}

const keyKinds = {
  publishable_key: { type: 'publishable' },
  secret_key: { type: 'secret', scopes: ['*'] },
  ios_publishable_key: { type: 'publishable', client_target: 'native_ios' },
  android_publishable_key: { type: 'publishable', client_target: 'native_android' },
} satisfies Record<keyof EnvironmentKeys, Pick<KeyRequest, 'type' | 'scopes' | 'client_target'>>

async function issueKeys(
  core: OperatorCore,
  scope: { organizationId: string; environment: Environment },
): Promise<EnvironmentKeys> {
  const key = async (name: keyof EnvironmentKeys) => {
    const request = { ...scope, name: `Development ${scope.environment}`, by: 'operator' } as const
    return (await issueApiKey(core, { ...request, ...keyKinds[name] })).revealedKey
  }
  return {
    publishable_key: await key('publishable_key'),
    secret_key: await key('secret_key'),
    ios_publishable_key: await key('ios_publishable_key'),
    android_publishable_key: await key('android_publishable_key'),
  }
}
