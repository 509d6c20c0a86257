import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { EdgeHeaders } from '../config.ts'

/** Fingerprints of the client's TLS handshake and HTTP/2 settings; null unless a trusted proxy forwards them. */
interface Handshake {
  ja4: string | null
  /** In Akamai's format: `1:65536;2:0;4:6291456;6:262144|15663105|0|m,a,s,p`. */
  http2: string | null
}

declare module 'fastify' {
  interface FastifyRequest {
    handshake: Handshake
  }
}

/** Pattern of a JA4 fingerprint such as `t13d1516h2_8daaf6152771_d8a2da3f94cd`, over TCP, QUIC or DTLS. */
export const ja4Pattern =
  /^[tqd](?:1[0-3]|s[23]|d[123]|00)[di][0-9]{4}[0-9a-zA-Z]{2}_[0-9a-f]{12}_[0-9a-f]{12}$/

// Settings, window update, priorities, and the order of pseudo headers.
const http2Pattern =
  /^(?:\d{1,5}:\d{1,10}(?:[;,]\d{1,5}:\d{1,10}){0,15})?\|\d{1,10}\|[\d:,]{1,128}\|[mpas](?:,[mpas]){0,3}$/

/** Adds `request.handshake`, read from the headers on access. */
export function decorateHandshake(app: FastifyInstance, headers: EdgeHeaders = {}): void {
  app.decorateRequest('handshake', {
    getter(this: FastifyRequest) {
      return handshakeOf(this, headers)
    },
  })
}

// Trusts the headers only if a trusted proxy forwarded a client address: anybody else could send any browser's
// fingerprint, and without a forwarded address the proxy itself is the client.
function handshakeOf({ ips = [], headers }: FastifyRequest, names: EdgeHeaders): Handshake {
  if (ips.length <= 1) return { ja4: null, http2: null }
  const readHeader = (name: string | undefined, pattern: RegExp) => {
    const value = name === undefined ? undefined : headers[name]
    return typeof value === 'string' && pattern.test(value) ? value : null
  }
  return { ja4: readHeader(names.ja4, ja4Pattern), http2: readHeader(names.http2, http2Pattern) }
}
