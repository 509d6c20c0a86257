import { randomBytes } from 'node:crypto'
import { inflateRawSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { createAuth } from '../../../infra/access/auth.ts'
import type { PublishablePrincipal } from '../../../infra/access/principal.ts'
import { generateApiKey } from '../../../infra/crypto/api-keys.ts'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { createCodec } from '../../../infra/event-store/codec.ts'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { createApp } from '../../../infra/http/app.ts'
import { createLogger } from '../../../infra/telemetry.ts'
import { sealToken } from '../../../infra/wire/sealed-token.ts'
import { collectRoutes } from '../../../services/collect/routes.ts'
import { validateResponses } from '../../support/described.ts'
import { createMemoryClaims } from '../../support/memory-claims.ts'
import { createMemoryDataKeys } from '../../support/memory-data-keys.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import { openAdmission } from '../../support/open-admission.ts'

export interface CollectServer {
  app: FastifyInstance
  publishableKey: string
  secretHash: string
  /** Set once it listens. */
  url: string
  listen(): Promise<void>
  /** Everything that collect appended, in order. */
  events(): RecordedEvent[]
  /** The plaintexts of the bodies that were accepted, as text. */
  plaintexts(): string[]
  /** Hand-offs asked for so far. */
  handOffs(): number
  close(): Promise<void>
}

const secretHash = 'ab'.repeat(32)

/** The collect service on an in-memory log, for a browser to talk to; pages can be added before it listens. */
export async function createCollectServer({ batchIntervalMs = 300 } = {}): Promise<CollectServer> {
  const keyring = createKeyring(randomBytes(32).toString('base64'))
  const kind = { type: 'publishable', environment: 'test' } as const
  const { key, lookupHash } = generateApiKey({ ...kind, keyring, random: randomBytes })
  const log = createMemoryLog()
  const codec = createCodec()
  let handOffs = 0
  const app = await createApp({
    logger: createLogger('silent'),
    random: randomBytes,
    publicUrl: 'http://test',
  })
  validateResponses(app)
  const principal: PublishablePrincipal = {
    ...kind,
    keyId: 'key_00000000000000000000000001',
    organizationId: 'org_00000000000000000000000001',
    clientTarget: 'browser',
    allowedOrigins: [],
    shortensAddresses: false,
    rateLimit: null,
  }
  const record = { status: 'active', graceExpiresAt: null, organizationStatus: 'active' } as const
  const findKey = async (hashes: string[]) =>
    hashes.includes(lookupHash) ? { ...record, principal } : undefined
  collectRoutes(app, {
    signatures: { baseUrls: ['https://own.example'], maxLifetimeMs: 3_600_000 },
    log,
    codec,
    auth: createAuth({ findKey, keyring, clock: Date.now }),
    keyring,
    clock: Date.now,
    random: randomBytes,
    dataKeys: createMemoryDataKeys(),
    claims: createMemoryClaims().open(),
    admission: openAdmission(),
    sourceMbPerHour: 1_000_000,
    batchIntervalMs,
    checkRecipients: async () => {},
    async sealResult({ sessionId, decisionId }) {
      handOffs++
      const payload = { session_id: sessionId, decision: { event_id: decisionId } }
      return sealToken({ payload, secretHashes: [secretHash], random: randomBytes })
    },
  })
  const events = () => log.records.map((stored) => codec.fromRecord(stored))
  const server = {
    app,
    publishableKey: key,
    secretHash,
    url: '',
    async listen() {
      server.url = await app.listen({ port: 0, host: '127.0.0.1' })
    },
    events,
    plaintexts: () =>
      events().flatMap(({ type, data }) =>
        type === 'BatchReceived' || type === 'ResultRequested'
          ? [inflateRawSync(data.payload).toString('utf8')]
          : [],
      ),
    handOffs: () => handOffs,
    close: () => app.close(),
  }
  return server
}
