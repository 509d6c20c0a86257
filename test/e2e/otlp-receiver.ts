import { buffer } from 'node:stream/consumers'
import { serveLocally } from '../support/local-server.ts'

export interface SentSpan {
  traceId: string
  spanId: string
  /** Empty for a span that begins its trace. */
  parentId: string
  name: string
  attributes: Record<string, string | number>
  resource: Record<string, string | number>
}

export interface OtlpReceiver {
  url: string
  spans: SentSpan[]
  paths: string[]
  headers: Record<string, string | string[] | undefined>[]
  close(): void
}

/** Takes OTLP over HTTP as protobuf (opentelemetry/proto/collector, v1) on a port of its own. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: SentSpan[] = []
  const paths: string[] = []
  const headers: OtlpReceiver['headers'] = []
  const { url, close } = await serveLocally(async (request, response) => {
    const body = readMessage(await buffer(request))
    headers.push(request.headers)
    paths.push(request.url ?? '')
    if (request.url === '/v1/traces') spans.push(...spansOf(body))
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  })
  return { url, spans, paths, headers, close }
}

function spansOf(body: Message): SentSpan[] {
  return messages(body, 1).flatMap((ofResource) => {
    const resource = attributesOf(messages(ofResource, 1)[0], 1)
    return messages(ofResource, 2)
      .flatMap((scope) => messages(scope, 2))
      .map((span) => ({
        traceId: hexOf(span, 1),
        spanId: hexOf(span, 2),
        parentId: hexOf(span, 4),
        name: text(span, 5),
        attributes: attributesOf(span, 9),
        resource,
      }))
  })
}

const hexOf = (message: Message, field: number) => values(message, field)[0]?.toString('hex') ?? ''

function attributesOf(
  message: Message | undefined,
  field: number,
): Record<string, string | number> {
  const pairs = message ? messages(message, field) : []
  return Object.fromEntries(
    pairs.map((pair) => {
      const value = messages(pair, 2)[0]
      const number = value && values(value, 3)[0]
      return [
        text(pair, 1),
        number ? Number(number.readBigUInt64LE()) : value ? text(value, 1) : '',
      ]
    }),
  )
}

/** Values by field number; numbers are eight bytes, little-endian. */
type Message = Map<number, Buffer[]>

/** Reads one message (protobuf.dev/programming-guides/encoding): what a field means is the caller's knowledge. */
function readMessage(bytes: Buffer): Message {
  const fields: Message = new Map()
  let at = 0

  function varint(): bigint {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++)
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }

  function take(length: number): Buffer {
    if (at + length > bytes.length) throw new Error('the message is cut off')
    at += length
    return bytes.subarray(at - length, at)
  }

  function value(type: number): Buffer {
    if (type === 0) return eightBytes(varint())
    if (type === 1) return take(8)
    if (type === 2) return take(Number(varint()))
    if (type === 5) return take(4)
    throw new Error(`no such wire type: ${type}`)
  }

  while (at < bytes.length) {
    const tag = Number(varint())
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), value(tag & 7)])
  }
  return fields
}

function eightBytes(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value))
  return bytes
}

const values = (message: Message, field: number): Buffer[] => message.get(field) ?? []
const messages = (message: Message, field: number): Message[] =>
  values(message, field).map(readMessage)
const text = (message: Message, field: number): string =>
  values(message, field)[0]?.toString('utf8') ?? ''
