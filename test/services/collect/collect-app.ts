import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { type AuthOptions, createAuth } from '../../../infra/access/auth.ts'
import type { KeyRecord, PublishablePrincipal } from '../../../infra/access/principal.ts'
import { generateApiKey } from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { type AppOptions, createApp } from '../../../infra/http/app.ts'
import {
  type CollectClientOptions,
  createCollectClient,
  type FetchLike,
} from '../../../infra/wire/collect/client.ts'
import type {
  BatchResponse,
  OpenResponse,
  ResultResponse,
} from '../../../infra/wire/collect/protocol.ts'
import { type CollectDeps, collectRoutes } from '../../../services/collect/routes.ts'
import { validateResponses } from '../../support/described.ts'
import { createMemoryClaims } from '../../support/memory-claims.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { createMemoryLog, type MemoryLog } from '../../support/memory-log.ts'
import { openAdmission } from '../../support/open-admission.ts'

const dataKeys = createMemoryDataKeys()
export const codec = createCodec(undefined, { sealing: { keys: dataKeys, random: randomBytes } })
export const firstMasterKey = Buffer.alloc(32, 1).toString('base64')
export const organization = {
  organizationId: 'org_00000000000000000000000001',
  environment: 'live',
} as const

/** What any answer of collect may have: which of it is there, a test says by what it expects. */
interface AnswerJson extends OpenResponse, Omit<BatchResponse, 'engineQuestions'>, ResultResponse {
  error: {
    code: string
    retryable: boolean
    request_id: string
    details: { fields: { name: string; issue: string; expected?: string; received?: string }[] }
  }
  /** Of /openapi.json. */
  paths: Record<string, Record<string, Operation>>
}

interface Operation {
  requestBody: object
  responses: object
  security: object[]
  parameters: { in: string; name: string; required: boolean }[]
}

/** What one answer looks like to a test. */
export interface Answer {
  status: number
  headers: Record<string, string | string[] | number | undefined>
  json: AnswerJson
}

export interface CollectApp {
  app: FastifyInstance
  log: MemoryLog
  now: { ms: number }
  publishable(changes?: Partial<PublishablePrincipal>): string
  secret(): string
  send(
    method: 'GET' | 'POST' | 'OPTIONS' | 'PUT',
    url: string,
    request?: SendOptions,
  ): Promise<Answer>
  /** The client's fetch, into the app without a socket; keeps what was sent and answered. */
  fetch: FetchLike
  exchanges: Exchange[]
  /** The last request of a kind that was sent, whether or not it was answered. */
  inFlight(kind: string): Sent
  events(): RecordedEvent[]
  close(): Promise<void>
}

export interface SendOptions {
  headers?: Record<string, string>
  payload?: string | Buffer
  /** Where it comes from, where that is not the app's usual address. */
  remoteAddress?: string
}

export interface Exchange extends SendOptions {
  url: string
  answer: Answer
}

export type Sent = Required<Pick<Exchange, 'url' | 'headers' | 'payload'>>

interface Options extends Partial<CollectDeps>, Pick<AuthOptions, 'limiter' | 'defaultLimits'> {
  masterKeys?: string
  /** Where requests come from. */
  remoteAddress?: string
  /** Of the HTTP edge. */
  edge?: Pick<AppOptions, 'trustedProxies' | 'edgeHeaders'>
}

/** The collect routes on the real HTTP edge and authentication, over an in-memory log. */
export async function startCollectApp({
  masterKeys = firstMasterKey,
  remoteAddress = '127.0.0.1',
  limiter,
  defaultLimits,
  edge,
  ...changes
}: Options = {}): Promise<CollectApp> {
  const now = { ms: 1_800_000_000_000 }
  const log = createMemoryLog()
  const keyring = createKeyring(masterKeys)
  const stored = new Map<string, KeyRecord>()
  const clock = () => now.ms
  const findKey = async (hashes: string[]) => hashes.map((hash) => stored.get(hash)).find(Boolean)
  const auth = createAuth({ keyring, clock, findKey, limiter, defaultLimits })
  const app = await createApp({
    logger: pino({ level: 'silent' }),
    random: randomBytes,
    publicUrl: 'http://localhost',
    ...edge,
  })
  validateResponses(app)
  const sealResult = async ({ decisionId }: { decisionId: string }) => `sealed:${decisionId}`
  const claims = createMemoryClaims().open()
  const known = { auth, keyring, dataKeys, clock, random: randomBytes }
  const fixed = { log, codec, claims, admission: openAdmission(), sourceMbPerHour: 900, ...known }
  const signatures = { baseUrls: ['https://own.example'], maxLifetimeMs: 3_600_000 }
  collectRoutes(app, {
    ...fixed,
    signatures,
    checkRecipients: async () => {},
    sealResult,
    ...changes,
  })
  await app.ready()
  const exchanges: Exchange[] = []
  const sent: Sent[] = []

  const send: CollectApp['send'] = async (method, url, { headers = {}, payload, ...from } = {}) => {
    const body = payload === undefined ? {} : { payload }
    const response = await app.inject({ method, url, headers, remoteAddress, ...from, ...body })
    const isJson = String(response.headers['content-type'] ?? '').includes('json')
    return {
      status: response.statusCode,
      headers: response.headers,
      json: isJson ? JSON.parse(response.body) : undefined,
    }
  }

  function addKey(type: 'publishable' | 'secret', principal: KeyRecord['principal']): string {
    const { key, lookupHash } = generateApiKey({
      type,
      environment: principal.environment,
      keyring,
      random: randomBytes,
    })
    stored.set(lookupHash, {
      principal,
      status: 'active',
      graceExpiresAt: null,
      organizationStatus: 'active',
    })
    return key
  }

  return {
    app,
    log,
    now,
    exchanges,
    send,
    publishable: (some = {}) =>
      addKey('publishable', {
        ...organization,
        keyId: 'key_00000000000000000000000001',
        type: 'publishable',
        clientTarget: 'browser',
        allowedOrigins: [],
        shortensAddresses: false,
        rateLimit: null,
        ...some,
      }),
    secret: () =>
      addKey('secret', {
        ...organization,
        keyId: 'key_00000000000000000000000002',
        type: 'secret',
        scopes: ['*'],
        capabilities: [],
        origins: [],
        rateLimit: null,
      }),
    async fetch(url, request) {
      const path = new URL(url).pathname
      const payload = Buffer.from(request.body)
      sent.push({ url: path, headers: request.headers, payload })
      const answer = await send('POST', path, { headers: request.headers, payload })
      exchanges.push({ url: path, headers: request.headers, payload, answer })
      const get = (name: string) => headerText(answer, name)
      return { status: answer.status, headers: { get }, json: async () => answer.json }
    },
    inFlight(kind) {
      const found = sent.findLast(({ url }) => url.endsWith(kind))
      if (!found) throw new Error(`nothing was posted to ${kind}`)
      return found
    },
    events: () => log.records.map((record) => codec.fromRecord(record)),
    close: () => app.close(),
  }
}

function headerText({ headers }: Answer, name: string): string | null {
  const value = headers[name]
  return value === undefined ? null : String(value)
}

/** A reference client on the app; never waits between tries. */
export function clientOf(
  app: CollectApp,
  publishableKey: string,
  options: Partial<CollectClientOptions> = {},
) {
  return createCollectClient({
    endpoint: 'http://collect.test',
    publishableKey,
    fetch: app.fetch,
    sdk: { name: 'test-sdk', version: '1.2.3', platform: 'web' },
    page: { url: 'https://shop.example/cart?step=2', referrer: 'https://search.example/' },
    retry: { attempts: 3, wait: async () => {} },
    ...options,
  })
}

export const quiet = { version: 1, elapsed_ms: 5 } as const

/** The last request of a kind that the client sent, ready to be sent again or changed. */
export function lastSent(
  app: CollectApp,
  kind: 'sessions' | 'batches' | 'results',
): Sent & Exchange {
  const found = app.exchanges.findLast(({ url }) => url.endsWith(`/${kind}`))
  if (!found?.headers || found.payload === undefined)
    throw new Error(`nothing was posted to ${kind}`)
  return { ...found, headers: found.headers, payload: found.payload }
}

/** Sends a recorded request once more, with changes. */
export function sendAgain(
  app: CollectApp,
  exchange: Sent,
  changes: Partial<Exchange> = {},
): Promise<Answer> {
  const { url, headers, payload, remoteAddress } = {
    remoteAddress: undefined,
    ...exchange,
    ...changes,
  }
  return app.send('POST', url, { headers, payload, ...(remoteAddress ? { remoteAddress } : {}) })
}
