import type { BatchReceived, DocumentOpened, ResultRequested } from '../../schemas/events.ts'

/** A page's life within a session, and which of its bodies were counted. */
export interface DocumentState {
  hash: string
  opened_at: number
  url: string
  referrer: string | null
  user_agent: string
  ip_address: string
  accept_language: string | null
  client_hints: Record<string, string>
  header_order: string[]
  /** Host of the Signature-Agent header. */
  signature_agent: string | null
  challenge: string
  timing_nonce: string
  last_seq: number
  /** Start of the body hash by sequence number, for the newest ones. */
  bodies: Record<string, string>
}

const maxDocuments = 16
/** Order is enforced by the nonce, so a repeat is of one of the last few bodies. */
const maxBodies = 32

/** A body's document, sequence number and hash. */
export type Body = Pick<BatchReceived | ResultRequested, 'document_id_hash' | 'seq' | 'body_hash'>

export function openedDocument(event: DocumentOpened): DocumentState {
  return {
    hash: event.document_id_hash,
    opened_at: event.opened_at,
    url: withoutNul(event.url),
    referrer: event.referrer === null ? null : withoutNul(event.referrer),
    user_agent: event.user_agent,
    ip_address: event.ip_address,
    accept_language: event.accept_language,
    client_hints: event.client_hints,
    header_order: event.header_order,
    signature_agent: event.signature_agent,
    challenge: event.challenge,
    timing_nonce: event.timing_nonce,
    last_seq: 0,
    bodies: {},
  }
}

/** Stands in for a document whose opening is no longer known. */
export function unknownDocument(event: BatchReceived | ResultRequested): DocumentState {
  return {
    hash: event.document_id_hash,
    opened_at: event.received_at,
    url: '',
    referrer: null,
    user_agent: event.user_agent,
    ip_address: event.ip_address,
    accept_language: null,
    client_hints: {},
    header_order: [],
    signature_agent: null,
    challenge: '',
    timing_nonce: '',
    last_seq: 0,
    bodies: {},
  }
}

/** The document with the body counted; the first body of a sequence number is the one that counts. */
export function acceptBody(document: DocumentState, body: Body): DocumentState | 'repeated' | 'conflicting' {
  const hash = body.body_hash.slice(0, 16)
  const taken = document.bodies[body.seq]
  if (taken !== undefined) return taken === hash ? 'repeated' : 'conflicting'
  if (body.seq <= document.last_seq - maxBodies) return 'repeated'
  const bodies: Record<string, string> = { ...document.bodies, [body.seq]: hash }
  const newest = Object.entries(bodies).slice(-maxBodies)
  const last_seq = Math.max(document.last_seq, body.seq)
  return { ...document, last_seq, bodies: Object.fromEntries(newest) }
}

/** Puts the document in its place, or at the end; forgets the earliest of too many. */
export function withDocument(documents: DocumentState[], document: DocumentState): DocumentState[] {
  const known = documents.some(({ hash }) => hash === document.hash)
  if (known) return documents.map((one) => (one.hash === document.hash ? keepBodies(one, document) : one))
  return [...documents, document].slice(-maxDocuments)
}

/** A redelivered opening must not make counted bodies count again. */
function keepBodies(known: DocumentState, next: DocumentState): DocumentState {
  return next.last_seq < known.last_seq ? known : next
}

/** Postgres cannot store U+0000, and a client's text may have one. */
function withoutNul(text: string): string {
  return text.replaceAll('\0', '')
}
