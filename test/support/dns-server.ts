import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { createServer } from 'node:net'
import {
  type Answer,
  decode,
  encode,
  type Packet,
  streamDecode,
  streamEncode,
  TRUNCATED_RESPONSE,
} from 'dns-packet'

export interface DnsQuestion {
  /** Lower-case name. */
  name: string
  type: string
  /** Number of earlier queries for the same name and type. */
  before: number
}

/** silent: never responds. */
export type DnsReply = Answer[] | 'NXDOMAIN' | 'SERVFAIL' | 'silent'

export interface DnsServer {
  /** Address for the client's `dnsServers`. */
  address: string
  /** Received questions in order, such as `A name`. */
  questions: string[]
  close(): Promise<void>
}

const rcodes = { NXDOMAIN: 3, SERVFAIL: 2 }
const largestUdpBytes = 512

/** Starts a DNS server on 127.0.0.1, UDP and TCP, with a function that answers each question. */
export async function startDnsServer(
  replyTo: (question: DnsQuestion) => DnsReply,
): Promise<DnsServer> {
  const questions: string[] = []
  const asked = new Map<string, number>()

  function responseTo(query: Packet): Packet | undefined {
    const [question] = query.questions ?? []
    if (!question) return undefined
    const name = question.name.toLowerCase()
    const key = `${question.type} ${name}`
    questions.push(key)
    const before = asked.get(key) ?? 0
    asked.set(key, before + 1)
    const reply = replyTo({ name, type: question.type, before })
    if (reply === 'silent') return undefined
    const isError = typeof reply === 'string'
    return {
      id: query.id ?? 0,
      type: 'response',
      flags: isError ? rcodes[reply] : 0,
      questions: query.questions ?? [],
      answers: isError ? [] : reply,
    }
  }

  const tcp = createServer((socket) => {
    let received = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      if (received.length < 2 || received.length < received.readUInt16BE() + 2) return
      const response = responseTo(streamDecode(received))
      if (response) socket.end(streamEncode(response))
    })
  }).listen(0, '127.0.0.1')
  await once(tcp, 'listening')
  const bound = tcp.address()
  if (bound === null || typeof bound === 'string') throw new Error('the DNS server has no port')

  const udp = createSocket('udp4', (message, from) => {
    const response = responseTo(decode(message))
    if (!response) return
    const bytes = encode(response)
    const fits = bytes.length <= largestUdpBytes
    const sent = fits ? bytes : encode({ ...response, answers: [], flags: TRUNCATED_RESPONSE })
    udp.send(sent, from.port, from.address)
  }).bind(bound.port, '127.0.0.1')
  await once(udp, 'listening')

  return {
    address: `127.0.0.1:${bound.port}`,
    questions,
    async close() {
      const closed = Promise.all([once(tcp, 'close'), once(udp, 'close')])
      tcp.close()
      udp.close()
      await closed
    },
  }
}

/** Returns records of the addresses that match the question's type. */
export function addressRecords({ name, type }: DnsQuestion, addresses: string[]): Answer[] {
  return addresses.flatMap((data): Answer[] => {
    if (type === 'A' && !data.includes(':')) return [{ name, type, ttl: 0, data }]
    if (type === 'AAAA' && data.includes(':')) return [{ name, type, ttl: 0, data }]
    return []
  })
}
