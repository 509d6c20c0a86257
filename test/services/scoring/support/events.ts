import { createHash } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import type { EventMeta } from '../../../../infra/event-store/event.ts'
import { derivedId } from '../../../../infra/ids.ts'
import type {
  BatchReceived,
  DocumentOpened,
  Environment,
  Platform,
  ResultRequested,
} from '../../../../schemas/events.ts'
import type { SessionEvent } from '../../../../services/scoring/session/state.ts'
import { agentOf, answers, type Client, desktopChrome } from './snapshots.ts'
import { startedAt } from './taught.ts'

export const organizationId = 'org_0123456789abcdefghjkmnpqrs'
export { startedAt }

/** Topics that scoring and its readers use. */
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
  /** Members of the document that differ from the default. */
  document: Partial<DocumentOpened>
}

/** Returns a session whose ids derive from its name. */
export function testSession(name: string, overrides: Partial<TestSession> = {}): TestSession {
  return {
    id: derivedId('sid', name),
    organizationId,
    documentHash: `doc-${name}`,
    client: desktopChrome,
    ip: '203.0.113.9',
    environment: 'live',
    platform: 'web',
    continuityIds: [],
    document: {},
    openedAt: startedAt,
    continuityId: `continuity-${name}`,
    ...overrides,
  }
}

/** Key of every document of an app. */
export const clientPublicKey = 'B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw'

function identity(session: TestSession) {
  return {
    session_id: session.id,
    organization_id: session.organizationId,
    environment: session.environment,
  }
}

export function opened(session: TestSession): SessionEvent[] {
  return [
    {
      type: 'SessionOpened',
      data: {
        ...identity(session),
        opened_at: session.openedAt,
        key_id: 'key_0123456789abcdefghjkmnpqrs',
        platform: session.platform,
        sdk_name: 'tidegate-js',
        sdk_version: '1.0.0',
        continuity_ids: session.continuityIds,
        continuity_id: session.continuityId,
      },
    },
    documentOpened(session),
  ]
}

/** Returns the opening of a document, as of a session's next page. */
export function documentOpened(session: TestSession): SessionEvent {
  const { client, ip, platform, documentHash, openedAt } = session
  return {
    type: 'DocumentOpened',
    data: {
      ...identity(session),
      opened_at: openedAt,
      document_id_hash: documentHash,
      resumed: false,
      url: 'https://shop.example/signup',
      referrer: null,
      user_agent: agentOf(session.client),
      ip_address: ip,
      accept_language: client.snapshot.navigator?.languages?.join() ?? null,
      client_hints: client.clientHints ?? {},
      header_order: ['host', 'user-agent', 'accept', 'accept-encoding', 'accept-language'],
      signature_agent: null,
      ja4: null,
      http2_fingerprint: null,
      signature: null,
      client_public_key: platform === 'web' ? null : clientPublicKey,
      ...answers,
      canvas_seed: 'seed-1',
      ...session.document,
    },
  }
}

interface BodyOptions {
  seq?: number
  at?: number
  /** Default: the client's snapshot for a batch, nothing for a hand-off. */
  observations?: object
  /** The body as sent. Replaces `observations`. */
  payload?: Buffer
}

function body(
  session: TestSession,
  { seq = 1, at = startedAt + 200, observations, payload }: BodyOptions,
) {
  const { snapshot } = session.client
  const whole = { version: 1, elapsed_ms: 500, ...(observations ?? { snapshot }) }
  const sent = payload ?? deflateRawSync(JSON.stringify(whole))
  const body_hash = createHash('sha256').update(sent).digest('hex')
  return {
    ...identity(session),
    document_id_hash: session.documentHash,
    seq,
    received_at: at,
    ip_address: session.ip,
    user_agent: agentOf(session.client),
    body_hash,
    payload: sent,
  }
}

/** Returns the platform of the SDK that sends such a snapshot. */
export const platformOf = ({ snapshot }: Client): Platform => (snapshot.native ? 'android' : 'web')

export function batch(
  session: TestSession,
  options: BodyOptions = {},
): { type: 'BatchReceived'; data: BatchReceived } {
  const data = body(session, options)
  const event_id = derivedId('bat', session.documentHash, String(data.seq), data.body_hash)
  return { type: 'BatchReceived', data: { ...data, event_id } }
}

/** Returns the opening of a session and its snapshot. */
export const visitOf = (session: TestSession): SessionEvent[] => [
  ...opened(session),
  batch(session),
]

export function handOff(
  session: TestSession,
  options: BodyOptions = {},
): { type: 'ResultRequested'; data: ResultRequested } {
  const data = body(session, { seq: 2, at: startedAt + 1000, observations: {}, ...options })
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
