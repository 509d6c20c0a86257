import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type Message, messages, readMessage, text, values } from './protobuf.ts'

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
  close(): Promise<void>
}

/** Takes OTLP over HTTP as protobuf (opentelemetry/proto/collector, v1) on a port of its own. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: SentSpan[] = []
  const paths: string[] = []
  const headers: OtlpReceiver['headers'] = []
  const server = createServer(async (request, response) => {
    const body = readMessage(await buffer(request))
    headers.push(request.headers)
    paths.push(request.url ?? '')
    if (request.url === '/v1/traces') spans.push(...spansOf(body))
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port }: AddressInfo = JSON.parse(JSON.stringify(server.address()))
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    paths,
    headers,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
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
