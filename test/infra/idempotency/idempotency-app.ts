import { randomBytes } from 'node:crypto'
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import type pg from 'pg'
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
  key?: string
  body?: object | null
  path?: string
  /** Organization and environment. */
  tenant?: string
  method?: 'POST' | 'PUT'
}

/** A shop whose orders are commands: it knows its own orders again by their id, as every decider does. */
export async function startShop() {
  const database = await createTestDatabase()
  const { pool } = database
  const clock = { now: 1_760_000_000_000 }
  const orders = new Map<string, { id: string; secret: string; at: number }>()
  const keyring = createKeyring(masterKey())
  const shop = { runs: 0, running: 0, mostAtOnce: 0, work: order, clock, orders }

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

  const apps: FastifyInstance[] = []
  /** A server process; all share the database. */
  async function open(options: { keyring?: Keyring; pool?: pg.Pool } = {}) {
    const common = { logger: pino({ level: 'silent' }), random: randomBytes }
    const now = () => clock.now
    const idempotency = createIdempotency({ pool, keyring, clock: now, ...common, ...options })
    const app = await createApp({ ...common, publicUrl: 'https://tidegate.example' })
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
    const run: RouteHandlerMethod = (request, reply) => idempotency.run({ request, reply }, counted)
    app.post('/orders', run)
    app.post('/orders/:id', run)
    app.post('/described', { schema: { body: z.looseObject({}) } }, run)
    app.put('/orders', run)
    app.post('/public', (request, reply) =>
      idempotency.run({ request, reply, scope: 'public' }, counted),
    )
    apps.push(app)
    return app
  }

  const app = await open()

  /** Orders; the body null is none. */
  async function post({ key, body = { name: 'a' }, ...rest }: Post = {}, on = app) {
    const { path = '/orders', tenant = '1/live', method = 'POST' } = rest
    const response = await on.inject({
      method,
      url: path,
      headers: {
        'content-type': 'application/json',
        'x-tenant': tenant,
        ...(key !== undefined && { 'idempotency-key': key }),
      },
      ...(body && { payload: JSON.stringify(body) }),
    })
    const { statusCode: status, headers, body: text } = response
    const replayed = headers['idempotent-replayed'] === 'true'
    return { status, headers, text, json: response.json(), replayed }
  }

  return {
    shop,
    pool,
    open,
    order,
    post,
    async stop() {
      await Promise.all(apps.map((one) => one.close()))
      await database.drop()
    },
  }
}
