import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { type AuthOptions, createAuth } from '../../../infra/access/auth.ts'
import type { KeyRecord, PublishablePrincipal } from '../../../infra/access/principal.ts'
import { generateApiKey } from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
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
import { createMemoryLog } from '../../support/memory-log.ts'
import { openAdmission } from '../../support/open-admission.ts'

const dataKeys = createMemoryDataKeys()
export const codec = createCodec(undefined, { sealing: { keys: dataKeys, random: randomBytes } })
export const firstMasterKey = Buffer.alloc(32, 1).toString('base64')
export const organization = {
  organizationId: 'org_00000000000000000000000001',
  environment: 'live',
} as const

/** Members of all responses; each test expects those of its response. */
interface AnswerJson extends OpenResponse, Omit<BatchResponse, 'engineQuestions'>, ResultResponse {
  error: { code: string; message: string; request_id: string; details: { fields: object[] } }
}

interface AppResponse {
  status: number
  headers: Record<string, string | string[] | number | undefined>
  json: AnswerJson
}

interface SendOptions {
  headers?: Record<string, string>
  payload?: string | Buffer
  remoteAddress?: string
}

/** A request of the reference client; `response` is set once the response arrived. */
export interface Sent {
  url: string
  headers: Record<string, string>
  payload: Buffer
  response?: AppResponse
}

interface Options extends Partial<CollectDeps>, Pick<AuthOptions, 'limiter' | 'defaultLimits'> {
  masterKeys?: string
  /** Source address of the requests. */
  remoteAddress?: string
  edge?: Pick<AppOptions, 'trustedProxies' | 'edgeHeaders'>
}

export type CollectApp = Awaited<ReturnType<typeof startCollectApp>>

/** The collect routes on the real HTTP edge and authentication, over an in-memory log. */
export async function startCollectApp({
  masterKeys = firstMasterKey,
  remoteAddress = '127.0.0.1',
  limiter,
  defaultLimits,
  edge,
  ...changes
}: Options = {}) {
  const now = { ms: 1_800_000_000_000 }
  const log = createMemoryLog()
  const keyring = createKeyring(masterKeys)
  const stored = new Map<string, KeyRecord>()
  const base = { keyring, clock: () => now.ms, random: randomBytes }
  const findKey = async (hashes: string[]) => hashes.map((hash) => stored.get(hash)).find(Boolean)
  const auth = createAuth({ ...base, findKey, limiter, defaultLimits })
  const logger = pino({ level: 'silent' })
  const app = await createApp({ ...base, logger, publicUrl: 'http://localhost', ...edge })
  validateResponses(app)
  collectRoutes(app, {
    ...base,
    log,
    codec,
    auth,
    dataKeys,
    claims: createMemoryClaims().open(),
    admission: openAdmission(),
    sourceMbPerHour: 900,
    signatures: { baseUrls: ['https://own.example'], maxLifetimeMs: 3_600_000 },
    requireRecipients: async () => {},
    sealResult: async ({ decisionId }) => `sealed:${decisionId}`,
    ...changes,
  })
  const sent: Sent[] = []

  async function send(
    method: 'GET' | 'POST' | 'OPTIONS' | 'PUT',
    url: string,
    request: SendOptions = {},
  ): Promise<AppResponse> {
    const response = await app.inject({ method, url, remoteAddress, ...request })
    const isJson = String(response.headers['content-type'] ?? '').includes('json')
    const { statusCode: status, headers, body } = response
    return { status, headers, json: isJson ? JSON.parse(body) : undefined }
  }

  /** Fetch for the client that calls the app without a socket. */
  const fetch: FetchLike = async (url, { headers, body }) => {
    const request: Sent = { url: new URL(url).pathname, headers, payload: Buffer.from(body) }
    sent.push(request)
    const response = await send('POST', request.url, request)
    request.response = response
    const get = (name: string) => response.headers[name]?.toString() ?? null
    return { status: response.status, headers: { get }, json: async () => response.json }
  }

  /** All appended records, in order. */
  const events = () => log.records.map((record) => codec.fromRecord(record))

  return {
    app,
    log,
    now,
    send,
    fetch,
    sent,
    events,
    /** Data of the events of a type, in order. */
    eventsOf: <Type extends keyof EventData>(type: Type): EventData[Type][] =>
      events()
        .filter((event) => event.type === type)
        .map(({ data }) => data as EventData[Type]),
    /** Creates a publishable key of the organization. */
    publishable(facts: Partial<PublishablePrincipal> = {}): string {
      const { environment = 'live' } = facts
      const { key, lookupHash } = generateApiKey({ ...base, type: 'publishable', environment })
      const principal: PublishablePrincipal = {
        ...organization,
        keyId: 'key_00000000000000000000000001',
        type: 'publishable',
        clientTarget: 'browser',
        allowedOrigins: [],
        shortensAddresses: false,
        rateLimit: null,
        ...facts,
      }
      const status = { status: 'active', organizationStatus: 'active' } as const
      stored.set(lookupHash, { principal, ...status, endsAt: null })
      return key
    },
    close: () => app.close(),
  }
}

type EventData = {
  [Type in DomainEvent['type']]: Extract<DomainEvent, { type: Type }>['data']
}

/** Creates a reference client that does not wait between retries. */
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

/** Returns the client's last request of a kind, to send it again or change it. */
export function lastSent(app: CollectApp, kind: 'sessions' | 'batches' | 'results'): Sent {
  const found = app.sent.findLast(({ url }) => url.endsWith(`/${kind}`))
  if (!found) throw new Error(`nothing was posted to ${kind}`)
  return found
}

/** Sends a recorded request again, with changes. */
export const sendAgain = (app: CollectApp, request: Sent, changes: Partial<Sent> = {}) => {
  const { url, headers, payload } = { ...request, ...changes }
  return app.send('POST', url, { headers, payload })
}
