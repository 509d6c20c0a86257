import { type Config, InvalidSettings, misspelledSettings, readConfig } from '../../infra/config.ts'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { readMasterKeys } from '../../infra/crypto/master-keys.ts'
import { kafkaSecurityOptions } from '../../infra/log/kafka/security.ts'
import { otlpSettings } from '../../infra/otlp/settings.ts'
import { checkDatabaseUrl } from '../../infra/postgres/pool.ts'
import { errorMessage } from '../../infra/thrown.ts'
import { loadAttestedApps } from '../scoring/attestation/apps.ts'
import { hasConsentAddress, publicUrlOf } from '../server/http.ts'
import { parseRoles, type Role } from '../server/roles.ts'
import { connectionsOfServer, openNetworkSource } from '../server/server.ts'

interface SettingsInput {
  env: NodeJS.ProcessEnv
  roles: string
}

export interface ServerSettings {
  config: Config
  databaseUrl: string
  masterKeys: string
  roles: Role[]
  warnings: string[]
}

/** Returns a server's settings without opening connections. Throws InvalidSettings with all problems. */
export async function readServerSettings({
  env,
  roles: list,
}: SettingsInput): Promise<ServerSettings> {
  const roles = parseRoles(list)
  const config = readConfig(env)
  const warnings = misspelledSettings(env)
  const problems: string[] = []
  const attempt = async (check: () => unknown, prefix = '') => {
    try {
      await check()
    } catch (error) {
      if (error instanceof InvalidSettings) problems.push(...error.problems)
      else problems.push(`${prefix}${errorMessage(error)}`)
    }
  }
  const { DATABASE_URL: databaseUrl = '' } = config
  if (databaseUrl)
    await attempt(() => checkDatabaseUrl(databaseUrl), 'DATABASE_URL cannot be used: ')
  else problems.push('DATABASE_URL is not set (only tidegate dev starts its own database)')
  let masterKeys = ''
  await attempt(async () => {
    masterKeys = (await readMasterKeys(config)) ?? ''
    if (!masterKeys)
      throw new Error(
        'TIDEGATE_MASTER_KEYS is not set, and neither is TIDEGATE_MASTER_KEYS_FILE or TIDEGATE_MASTER_KEYS_COMMAND',
      )
    createKeyring(masterKeys)
  })
  await attempt(() => connectionsOfServer(config, roles))
  await attempt(() => kafkaSecurityOptions(config))
  await attempt(() => otlpSettings(config))
  await attempt(() => publicUrlOf(config, config.PORT))
  if (roles.includes('scoring')) await attempt(() => loadAttestedApps(config))
  if (problems.length > 0) throw new InvalidSettings([...problems, ...warnings])
  if (roles.includes('gate') && !hasConsentAddress(config))
    warnings.push('PUBLIC_URL is not set or has a path: people cannot open Gate consent pages')
  return { config, databaseUrl, masterKeys, roles, warnings }
}

/** Returns the same settings as readServerSettings, but also throws if the IP data files cannot be loaded. */
export async function checkServerSettings(input: SettingsInput): Promise<ServerSettings> {
  const settings = await readServerSettings(input)
  const { config, roles, warnings } = settings
  await using undo = new AsyncDisposableStack()
  await openNetworkSource(config, { roles, undo, warn: (text) => warnings.push(text) })
  return settings
}
