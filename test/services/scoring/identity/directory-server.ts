import { once } from 'node:events'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { createAddressRules } from '../../../../infra/safe-http/addresses.ts'
import type { FetchOptions } from '../../../../services/scoring/identity/fetch.ts'
import { addressRecords, type DnsReply, startDnsServer } from '../../../support/dns-server.ts'
import { createAuthority } from '../../../support/tls-certificates.ts'

export interface DirectoryServer {
  /** Value of the agent's Signature-Agent header. */
  origin: string
  directory: string
  /** Paths that were requested. */
  requests: string[]
  /** Received DNS questions. */
  questions: string[]
  /** Lets the client reach loopback addresses only. */
  options: FetchOptions
  close(): Promise<void>
}

export interface Reply {
  status?: number
  headers?: Record<string, string>
  body?: string
}

const authority = createAuthority()
const host = 'agent.example'

/** Serves an agent's key directory on 127.0.0.1. `reply` may never settle. */
export async function startDirectory(
  reply: (path: string) => Reply | Promise<Reply>,
): Promise<DirectoryServer> {
  const requests: string[] = []
  const server = createServer(authority.issue({ host }), (request, response) => {
    requests.push(request.url ?? '')
    // Some tests abort the request.
    response.on('error', () => {})
    Promise.resolve(reply(request.url ?? '')).then(({ status = 200, headers = {}, body = '' }) =>
      response.writeHead(status, headers).end(body),
    )
  })
  const port = await portOf(server)
  const dns = await startDnsServer((question) => addressRecords(question, ['127.0.0.1']))
  const origin = `https://${host}:${port}`
  return {
    origin,
    directory: `${origin}/.well-known/http-message-signatures-directory`,
    requests,
    questions: dns.questions,
    options: {
      rules: createAddressRules(['127.0.0.0/8']),
      dnsServers: [dns.address],
      ca: authority.ca,
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
      await dns.close()
    },
  }
}

async function portOf(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}

/** Starts a DNS server that resolves any address to the names, and each name to its addresses. */
export function startReverseDns(
  names: string[] | DnsReply,
  addresses: Record<string, string[]> = {},
): ReturnType<typeof startDnsServer> {
  return startDnsServer((question) => {
    if (question.type !== 'PTR') return addressRecords(question, addresses[question.name] ?? [])
    if (!Array.isArray(names)) return names
    return names.flatMap((data) =>
      typeof data === 'string' ? [{ name: question.name, type: 'PTR' as const, ttl: 0, data }] : [],
    )
  })
}
