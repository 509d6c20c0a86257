import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { createAuth } from '../../../infra/access/auth.ts'
import type { KeyRecord } from '../../../infra/access/principal.ts'
import { generateApiKey, lookupHashes } from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { createApp } from '../../../infra/http/app.ts'
import type { NetworkSource } from '../../../infra/ip/network.ts'
import { agentRoutes } from '../../../services/agents/routes.ts'
import { validateResponses } from '../../support/described.ts'
import { createMemoryLimiter } from '../../support/memory-limiter.ts'

export const now = 1_800_000_000_000
export const path = '/v1/agents/ip-rotation'

interface KeyOptions {
  scopes?: string[]
  capabilities?: string[]
  /** Units in 60 seconds. */
  rateLimit?: number
}

/** The route on the real HTTP edge, with keys in memory and a limiter that counts exactly. */
export async function startAgents(network: NetworkSource) {
  const clock = () => now
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const stored = new Map<string, KeyRecord>()
  const findKey = async (hashes: string[]) => hashes.map((hash) => stored.get(hash)).find(Boolean)
  const auth = createAuth({ findKey, keyring, clock, limiter: createMemoryLimiter(clock) })
  const logged: string[] = []
  const logger = pino({ level: 'warn' }, { write: (line) => void logged.push(line) })
  const app = await createApp({
    logger,
    random: randomBytes,
    publicUrl: 'https://tidegate.example',
  })
  const described = validateResponses(app)
  agentRoutes(app, { auth, network, clock, logger })

  function key({
    scopes = ['*'],
    capabilities = ['ip_rotation'],
    rateLimit = 600,
  }: KeyOptions = {}): string {
    const { key } = generateApiKey({
      type: 'secret',
      environment: 'live',
      keyring,
      random: randomBytes,
    })
    const organizationId = `org_${String(stored.size).padStart(26, '0')}` as const
    const base = { keyId: 'key_1', organizationId, environment: 'live', rateLimit } as const
    stored.set(lookupHashes(keyring, key)[0] ?? '', {
      principal: { ...base, type: 'secret', scopes, capabilities, origins: [] },
      status: 'active',
      graceExpiresAt: null,
      organizationStatus: 'active',
    })
    return key
  }

  const usual = key()

  /** `text` is sent as it is, with its content type; otherwise `body` as JSON. */
  async function post(body: unknown, { as = usual, text, type = 'application/json' }: Post = {}) {
    const response = await app.inject({
      method: 'POST',
      url: path,
      headers: { authorization: `Bearer ${as}`, 'content-type': type },
      payload: text ?? JSON.stringify(body),
    })
    const { statusCode: status, headers } = response
    return { status, headers, cost: headers['x-ratelimit-cost'], body: response.json() }
  }

  return { app, key, post, described, logged }
}

interface Post {
  as?: string
  text?: string
  type?: string
}
