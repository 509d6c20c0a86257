import { createHash } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import type { EventMeta } from '../../../../infra/event-store/event.ts'
import { derivedId } from '../../../../infra/ids.ts'
import type {
  BatchReceived,
  DocumentSignature,
  Environment,
  Platform,
  ResultRequested,
} from '../../../../schemas/events.ts'
import type { SessionEvent } from '../../../../services/scoring/session/state.ts'
import { answers, type Client, desktopChrome } from './snapshots.ts'
import { startedAt } from './taught.ts'

export const organizationId = 'org_0123456789abcdefghjkmnpqrs'
export { startedAt }

/** What scoring reads and writes, and what those that follow it read. */
export const scoringTopics = ['collect', 'sessions', 'visitors', 'policies', 'erasures'].map(
  (name) => ({
    topic: `tidegate.${name}.v1` as const,
    partitions: 2,
  }),
)

export interface TestSession {
  id: string
  organizationId: string
  documentHash: string
  client: Client
  ip: string
  environment: Environment
  platform: Platform
  continuityIds: string[]
  continuityId: string
  /** Epoch milliseconds. */
  openedAt: number
  /** Names of further request headers. */
  headers: string[]
  signatureAgent: string | null
  ja4: string | null
  signature: DocumentSignature | null
}

/** A session of a client; everything else by its name. */
export function testSession(name: string, some: Partial<TestSession> = {}): TestSession {
  return {
    id: derivedId('sid', name),
    organizationId,
    documentHash: `doc-${name}`,
    client: desktopChrome,
    ip: '203.0.113.9',
    environment: 'live',
    platform: 'web',
    continuityIds: [],
    headers: [],
    signatureAgent: null,
    ja4: null,
    signature: null,
    openedAt: startedAt,
    continuityId: `continuity-${name}`,
    ...some,
  }
}

export function userAgentOf({ client }: TestSession): string {
  return client.snapshot.navigator?.user_agent ?? ''
}

/** Of each document of an app. */
export const clientPublicKey = 'B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw'

function identity(session: TestSession) {
  return {
    session_id: session.id,
    organization_id: session.organizationId,
    environment: session.environment,
  }
}

export function opened(session: TestSession): SessionEvent[] {
  const common = { ...identity(session), opened_at: session.openedAt }
  return [
    {
      type: 'SessionOpened',
      data: {
        ...common,
        key_id: 'key_0123456789abcdefghjkmnpqrs',
        platform: session.platform,
        sdk_name: 'tidegate-js',
        sdk_version: '1.0.0',
        continuity_ids: session.continuityIds,
        continuity_id: session.continuityId,
      },
    },
    {
      type: 'DocumentOpened',
      data: {
        ...common,
        document_id_hash: session.documentHash,
        resumed: false,
        url: 'https://shop.example/signup',
        referrer: null,
        user_agent: userAgentOf(session),
        ip_address: session.ip,
        accept_language: session.client.snapshot.navigator?.languages?.join() ?? null,
        client_hints: session.client.clientHints ?? {},
        header_order: [
          'host',
          'user-agent',
          'accept',
          'accept-encoding',
          'accept-language',
          ...session.headers,
        ],
        signature_agent: session.signatureAgent,
        ja4: session.ja4,
        http2_fingerprint: null,
        signature: session.signature,
        client_public_key: session.platform === 'web' ? null : clientPublicKey,
        ...answers,
        canvas_seed: 'seed-1',
      },
    },
  ]
}

export interface BodyOptions {
  seq?: number
  at?: number
  /** Observations as the client sends them, or the raw payload. */
  observations?: unknown
  payload?: Buffer
}

function body(
  session: TestSession,
  { seq = 1, at = startedAt + 200, observations, payload }: BodyOptions,
) {
  const sent = payload ?? deflateRawSync(JSON.stringify(observations ?? snapshotOnly(session)))
  const body_hash = createHash('sha256').update(sent).digest('hex')
  return {
    ...identity(session),
    document_id_hash: session.documentHash,
    seq,
    received_at: at,
    ip_address: session.ip,
    user_agent: userAgentOf(session),
    body_hash,
    payload: sent,
  }
}

/** The platform whose SDK would send it. */
export const platformOf = ({ snapshot }: Client): Platform => (snapshot.native ? 'android' : 'web')

function snapshotOnly({ client }: TestSession) {
  return { version: 1, elapsed_ms: 120, snapshot: client.snapshot }
}

export function batch(
  session: TestSession,
  options: BodyOptions = {},
): { type: 'BatchReceived'; data: BatchReceived } {
  const data = body(session, options)
  const event_id = derivedId('bat', session.documentHash, String(data.seq), data.body_hash)
  return { type: 'BatchReceived', data: { ...data, event_id } }
}

export function handOff(
  session: TestSession,
  options: BodyOptions = {},
): { type: 'ResultRequested'; data: ResultRequested } {
  const nothing = { version: 1, elapsed_ms: 900 }
  const data = body(session, { seq: 2, at: startedAt + 1000, observations: nothing, ...options })
  const event_id = derivedId('res', session.documentHash, String(data.seq), data.body_hash)
  return {
    type: 'ResultRequested',
    data: { ...data, event_id, decision_id: derivedId('evt', event_id) },
  }
}

export function idled(
  session: TestSession,
  { at, reason = 'idle' }: { at: number; reason?: 'idle' | 'expired' },
): SessionEvent {
  const event_id = derivedId('idl', session.id, reason, String(at))
  const decision_id = derivedId('evt', event_id)
  return {
    type: 'SessionIdled',
    data: { ...identity(session), event_id, decision_id, idled_at: at, reason },
  }
}

export function metaOf({ type, data }: SessionEvent): EventMeta {
  const eventId = 'event_id' in data ? data.event_id : derivedId('opn', type, JSON.stringify(data))
  return {
    eventId,
    time: startedAt,
    organizationId: data.organization_id,
    environment: data.environment,
  }
}
