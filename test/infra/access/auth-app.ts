import { randomBytes } from 'node:crypto'
import type { InjectOptions } from 'fastify'
import pino from 'pino'
import { type AuthOptions, createAuth, type KeyAuth } from '../../../infra/access/auth.ts'
import type { KeyRecord, PublishablePrincipal } from '../../../infra/access/principal.ts'
import { generateApiKey, lookupHashes } from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { createApp } from '../../../infra/http/app.ts'
import type { KeyType } from '../../../schemas/events.ts'

export const start = 1_800_000_000_000
export const organizationId = 'org_00000000000000000000000001'
export const otherOrganization = 'org_00000000000000000000000002'

export type AuthApp = Awaited<ReturnType<typeof startAuthApp>>

/** Starts an app with real authentication, keys in memory and a clock that tests move. */
export async function startAuthApp(
  options: (now: { ms: number }) => Partial<AuthOptions> = () => ({}),
) {
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const now = { ms: start }
  const stored = new Map<string, KeyRecord>()
  const counts = { lookups: 0 }
  const findKey = async (hashes: string[]) => {
    counts.lookups++
    return hashes.map((hash) => stored.get(hash)).find(Boolean)
  }
  const auth = createAuth({ keyring, clock: () => now.ms, findKey, ...options(now) })
  const logger = pino({ level: 'silent' })
  const app = await createApp({ logger, random: randomBytes, publicUrl: 'http://localhost' })
  addRoutes(app, auth)

  /** Returns a well-formed key that does not exist. */
  const unknownKey = (type: KeyType = 'secret') =>
    generateApiKey({ type, environment: 'live', keyring, random: randomBytes }).key

  function add(record: KeyRecord): string {
    const key = unknownKey(record.principal.type)
    stored.set(lookupHashes(keyring, key)[0] ?? '', record)
    return key
  }

  return {
    app,
    auth,
    now,
    counts,
    unknownKey,
    secret: (scopes: string[] = ['*'], changes: Partial<KeyRecord> = {}) =>
      add({
        ...active,
        principal: { ...base, type: 'secret', scopes, capabilities: [], origins: [] },
        ...changes,
      }),
    publishable(changes: Partial<PublishablePrincipal> = {}) {
      const browser = { ...base, type: 'publishable', clientTarget: 'browser' } as const
      return add({
        ...active,
        principal: { ...browser, allowedOrigins: [], shortensAddresses: false, ...changes },
      })
    },
    /** Changes a stored record without invalidating the cache. */
    change(key: string, update: (record: KeyRecord) => Partial<KeyRecord>): void {
      const [hash = ''] = lookupHashes(keyring, key)
      const record = stored.get(hash)
      if (record) stored.set(hash, { ...record, ...update(record) })
    },
    /** Returns the response with its error code (undefined for a success) and rate-limit headers. */
    async send({ key, ...request }: Send) {
      const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` }
      const response = await app.inject({
        ...request,
        headers: { ...authorization, ...request.headers },
      })
      const { statusCode: status, headers } = response
      const limits = ['limit', 'remaining', 'cost'].map((name) => headers[`x-ratelimit-${name}`])
      return { status, headers, limits, code: response.json().error?.code, json: response.json() }
    },
  }
}

export interface Send extends InjectOptions {
  key?: string
  headers?: Record<string, string>
}

const base = {
  keyId: 'key_00000000000000000000000001',
  organizationId,
  environment: 'live',
  rateLimit: null,
} as const
const active = { status: 'active', endsAt: null, organizationStatus: 'active' } as const

type App = Awaited<ReturnType<typeof createApp>>

function addRoutes(app: App, auth: KeyAuth): void {
  app.get('/rest', { onRequest: auth.requireSecret('sessions:list') }, (request) =>
    auth.secret(request),
  )
  app.get('/read', { onRequest: auth.requireSecret('sessions:read') }, (request) =>
    auth.principal(request),
  )
  app.get('/collect', { onRequest: auth.requirePublishable() }, (request) =>
    auth.publishable(request),
  )
  app.get(
    '/v1/organizations/:organizationId',
    { onRequest: auth.requireOwnOrganization('organizations:read') },
    (request) => auth.secret(request),
  )
}
