import { type CollectClient, createCollectClient } from '../../../infra/wire/collect/client.ts'
import type { Marks } from './marks.ts'
import { markedAddress, markedBinding } from './marks.ts'
import { markedObservations } from './observations.ts'

export interface MarkedVisitor {
  n: number
  marks: Marks
  /** The customer's id of this person. */
  userId: string
  address: string
  sessionIds: string[]
  /** Continuity id that the browser stored. */
  continuity: string
}

export function markedVisitor(n: number, marks: Marks): MarkedVisitor {
  const userId = `${marks.text('client_user_id')} "ü" %41/${n}`
  return { n, marks, userId, address: markedAddress(marks, n), sessionIds: [], continuity: '' }
}

interface Server {
  baseUrl: string
  publishableKey: string
}

const chrome =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'

// All headers that the server reads, and some others.
function headersOf({ marks, address }: MarkedVisitor, userAgent: string): Record<string, string> {
  return {
    'user-agent': userAgent,
    'x-forwarded-for': address,
    'accept-language': `de-${marks.text('accept-language')};q=0.9`,
    'sec-ch-ua': `"${marks.text('sec-ch-ua')}";v="140"`,
    [`sec-ch-ua-${marks.text('a hint')}`]: marks.text('the value of a hint'),
    [`x-${marks.text('the name of a header')}`]: marks.text('the value of a header'),
    'signature-agent': `"https://${marks.text('signature-agent')}.example"`,
    signature: `sig=:${marks.text('signature')}:`,
    'x-request-id': marks.text('x-request-id'),
  }
}

// Headers that only browsers send.
function pageHeaders({ marks, continuity }: MarkedVisitor): Record<string, string> {
  return {
    origin: `https://${marks.text('origin')}.example`,
    referer: `https://${marks.text('referer')}.example/`,
    cookie: `other=${marks.text('cookie')}${continuity && `; __Host-sid=${continuity}`}`,
  }
}

type Platform = 'web' | 'ios'

function clientOf(
  visitor: MarkedVisitor,
  { baseUrl: endpoint, publishableKey }: Server,
  platform: Platform,
) {
  const { marks } = visitor
  const userAgent = `${chrome} ${marks.text('user-agent')}/1`
  const page = {
    url: `https://${marks.text('page.url')}.example/${encodeURIComponent(`ü ${marks.text('page.url path')}`)}?q=${marks.text('page.url query')}`,
    referrer: `https://${marks.text('page.referrer')}.example/`,
  }
  const own = {
    ...headersOf(visitor, userAgent),
    ...(platform === 'web' ? pageHeaders(visitor) : {}),
  }
  const client = createCollectClient({
    endpoint,
    publishableKey,
    sdk: { name: marks.text('sdk.name'), version: marks.text('sdk.version'), platform },
    ...(platform === 'web' ? { page, continuity: marks.text('continuity') } : {}),
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...own } }),
  })
  return { client, userAgent }
}

/** Opens a session of a page or app, with marks in everything that a client can send, and waits for its result. */
export async function visitMarked(
  visitor: MarkedVisitor,
  server: Server,
  platform: Platform,
): Promise<CollectClient> {
  const { client, userAgent } = clientOf(visitor, server, platform)
  const asked = await client.open()
  visitor.sessionIds.push(asked.sessionId)
  const { fingerprint } = await client.sendBatch(
    markedObservations(visitor.marks, { asked, userAgent }),
  )
  const binding = markedBinding(visitor.marks)
  await client.requestResult({
    version: 1,
    elapsed_ms: visitor.marks.number('elapsed_ms'),
    binding,
  })
  if (platform === 'web') visitor.continuity = fingerprint?.state.id ?? ''
  return client
}

/** Opens a session with the stored continuity id, without observations. */
export async function openMarked(visitor: MarkedVisitor, server: Server): Promise<CollectClient> {
  const { client } = clientOf(visitor, server, 'web')
  visitor.sessionIds.push((await client.open()).sessionId)
  return client
}
