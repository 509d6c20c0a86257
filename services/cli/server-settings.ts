import { type Config, readConfig } from '../../infra/config.ts'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { readMasterKeys } from '../../infra/crypto/master-keys.ts'
import { kafkaSecurity } from '../../infra/log/kafka/security.ts'
import { otlpSettings } from '../../infra/otlp/settings.ts'
import { hasConsentAddress } from '../server/http.ts'
import { parseRoles, type Role } from '../server/roles.ts'
import { connectionsOfServer, networkFor } from '../server/server.ts'

interface SettingsInput {
  env: NodeJS.ProcessEnv
  roles: string
}

interface ServerSettings {
  config: Config
  databaseUrl: string
  masterKeys: string
  roles: Role[]
  warnings: string[]
}

/** What a server needs of the settings. Throws what stops its start, before anything is opened. */
export async function readServerSettings({ env, roles: list }: SettingsInput): Promise<ServerSettings> {
  const config = readConfig(env)
  const { DATABASE_URL: databaseUrl } = config
  if (!databaseUrl) throw new Error('DATABASE_URL is not set (tidegate dev brings its own database)')
  const masterKeys = await readMasterKeys(config)
  if (!masterKeys) throw new Error('TIDEGATE_MASTER_KEYS is not set, nor its file or command')
  createKeyring(masterKeys)
  const roles = parseRoles(list)
  connectionsOfServer(config, roles)
  kafkaSecurity(config)
  otlpSettings(config)
  const isLost = roles.includes('gate') && !hasConsentAddress(config)
  const warnings = isLost
    ? ['PUBLIC_URL is not set or has a path: people cannot open consent pages of Gate']
    : []
  return { config, databaseUrl, masterKeys, roles, warnings }
}

/** The same where no server is started, which would read the files of addresses itself. Returns the warnings. */
export async function checkServerSettings(input: SettingsInput): Promise<string[]> {
  const { config, roles, warnings } = await readServerSettings(input)
  await using undo = new AsyncDisposableStack()
  await networkFor(config, { roles, undo, warn: (text) => warnings.push(text) })
  return warnings
}
