import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { z } from 'zod'
import { createKeyring, type Keyring } from '../../../infra/crypto/keyring.ts'
import { createApp } from '../../../infra/http/app.ts'
import {
  type Command,
  type CommandAnswer,
  createIdempotency,
} from '../../../infra/idempotency/idempotency.ts'
import { timeOrderedId } from '../../../infra/ids.ts'
import { createTestDatabase } from '../../support/postgres.ts'

export const masterKey = () => randomBytes(32).toString('base64')

export interface Post {
  key?: string | undefined
  /** null = none. */
  body?: object | null
  path?: string
  organization?: `org_${string}`
  environment?: 'live' | 'test'
}

/** A shop whose orders are commands: it knows its own orders again by their id, as every decider does. */
export async function startShop({
  keyring = createKeyring(masterKey()),
}: {
  keyring?: Keyring
} = {}) {
  const database = await createTestDatabase()
  const { pool } = database
  const clock = { now: 1_760_000_000_000 }
  const orders = new Map<string, { id: string; secret: string; at: number }>()
  const shop = { runs: 0, running: 0, mostAtOnce: 0, work: order, keyring, clock, orders }

  /** The effect that happens once however often the command runs. */
  async function order({ random, now }: Command): Promise<CommandAnswer> {
    const id = timeOrderedId('key', now, random)
    const secret = random(20).toString('hex')
    if (!orders.has(id)) orders.set(id, { id, secret, at: now })
    return { status: 201, body: { id, secret, at: now, name: 'Zoë "1"' } }
  }

  async function counted(command: Command): Promise<CommandAnswer> {
    shop.runs++
    shop.mostAtOnce = Math.max(shop.mostAtOnce, ++shop.running)
    try {
      return await shop.work(command)
    } finally {
      shop.running--
    }
  }

  /** A server process; all share the database. */
  async function open({ keyring = shop.keyring, reach = pool } = {}) {
    const logger = pino({ level: 'silent' })
    const idempotency = createIdempotency({
      pool: reach,
      keyring,
      clock: () => clock.now,
      random: randomBytes,
      logger,
    })
    const app = await createApp({
      logger,
      random: randomBytes,
      publicUrl: 'https://tidegate.example',
    })
    app.addHook('onRequest', async (request) => {
      const [organizationId, environment] = String(request.headers['x-tenant']).split('/')
      request.principal = {
        keyId: 'key_1',
        organizationId: `org_${organizationId}`,
        environment: environment === 'test' ? 'test' : 'live',
        rateLimit: null,
        type: 'secret',
        scopes: [],
        capabilities: [],
        origins: [],
      }
    })
    app.post('/orders', (request, reply) => idempotency.run({ request, reply }, counted))
    app.post('/orders/:id', (request, reply) => idempotency.run({ request, reply }, counted))
    const schema = { body: z.looseObject({}) }
    app.post('/described', { schema }, (request, reply) =>
      idempotency.run({ request, reply }, counted),
    )
    app.put('/orders', (request, reply) => idempotency.run({ request, reply }, counted))
    app.post('/public', (request, reply) =>
      idempotency.run({ request, reply, scope: 'public' }, counted),
    )
    return app
  }

  const app = await open()
  type App = typeof app

  async function send(
    method: 'POST' | 'PUT',
    { key, body = { name: 'a' }, ...rest }: Post,
    on: App = app,
  ) {
    const { path = '/orders', organization = 'org_1', environment = 'live' } = rest
    const response = await on.inject({
      method,
      url: path,
      headers: {
        'content-type': 'application/json',
        'x-tenant': `${organization.slice(4)}/${environment}`,
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body && { payload: JSON.stringify(body) }),
    })
    const { statusCode: status, headers, body: text } = response
    return {
      status,
      headers,
      text,
      json: response.json(),
      replayed: headers['idempotent-replayed'],
    }
  }

  return {
    shop,
    pool,
    open,
    order,
    post: (post: Post = {}, on?: App) => send('POST', post, on),
    put: (post: Post = {}) => send('PUT', post),
    async stop() {
      await app.close()
      await database.drop()
    },
  }
}
