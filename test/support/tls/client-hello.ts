/** What a client offers when it begins TLS (RFC 8446, 4.1.2), with GREASE values (RFC 8701) and each list as sent. */
export interface ClientHello {
  legacyVersion: number
  cipherSuites: number[]
  /** Types of extensions. */
  extensions: number[]
  /** Empty where the extension is missing, as each of the following is. */
  supportedVersions: number[]
  signatureAlgorithms: number[]
  /** Names of protocols, as bytes: they need not be text. */
  alpn: Buffer[]
}

export type HelloReading =
  | { state: 'complete'; hello: ClientHello }
  /** More bytes may make it a hello. */
  | { state: 'incomplete' }
  | { state: 'malformed' }

/** What browsers send has 2 KiB at most, and OpenSSL's own limit is so high, too. */
export const maxHelloBytes = 16 * 1024

const handshakeRecord = 22
const clientHelloMessage = 1
const maxRecordBytes = 16_384

const extension = { signatureAlgorithms: 13, alpn: 16, supportedVersions: 43 }

/** Reads the first bytes of a connection: TLS records, over any number of which the hello may be split. Never throws. */
export function readClientHello(bytes: Buffer): HelloReading {
  const message = joinRecords(bytes)
  if (message === 'malformed') return { state: 'malformed' }
  if (message.length > 0 && message[0] !== clientHelloMessage) return { state: 'malformed' }
  if (message.length < 4) return { state: 'incomplete' }
  const end = 4 + message.readUIntBE(1, 3)
  if (end > maxHelloBytes) return { state: 'malformed' }
  if (message.length < end) return { state: 'incomplete' }
  const hello = parseHello(message.subarray(4, end))
  return hello ? { state: 'complete', hello } : { state: 'malformed' }
}

// What is there of the handshake message, without the headers of its records.
function joinRecords(bytes: Buffer): Buffer | 'malformed' {
  const fragments: Buffer[] = []
  let at = 0
  while (at < bytes.length) {
    if (bytes[at] !== handshakeRecord || (bytes[at + 1] ?? 3) !== 3) return 'malformed'
    if (bytes.length < at + 5) break
    const length = bytes.readUInt16BE(at + 3)
    if (length === 0 || length > maxRecordBytes) return 'malformed'
    fragments.push(bytes.subarray(at + 5, at + 5 + length))
    at += 5 + length
    if (isWhole(fragments)) break
  }
  return Buffer.concat(fragments)
}

// What follows the hello is not looked at: it may be early data, in records of another type.
function isWhole(fragments: readonly Buffer[]): boolean {
  const head = Buffer.concat(fragments)
  return head.length >= 4 && head.length >= 4 + head.readUIntBE(1, 3)
}

function parseHello(body: Buffer): ClientHello | undefined {
  const reader = new Reader(body)
  const legacyVersion = reader.number(2)
  reader.bytes(32)
  reader.vector(1)
  const cipherSuites = numbersOf(reader.vector(2))
  reader.vector(1)
  const extensions = reader.isAtEnd() ? [] : extensionsOf(reader.vector(2))
  if (reader.failed || !reader.isAtEnd() || !cipherSuites || !extensions) return undefined
  const dataOf = (type: number) => extensions.find((one) => one.type === type)?.data
  const supportedVersions = listed(dataOf(extension.supportedVersions), 1)
  const signatureAlgorithms = listed(dataOf(extension.signatureAlgorithms), 2)
  const alpn = protocolsOf(dataOf(extension.alpn))
  if (!supportedVersions || !signatureAlgorithms || !alpn) return undefined
  const types = extensions.map(({ type }) => type)
  return {
    legacyVersion,
    cipherSuites,
    extensions: types,
    supportedVersions,
    signatureAlgorithms,
    alpn,
  }
}

function extensionsOf(bytes: Buffer): { type: number; data: Buffer }[] | undefined {
  const reader = new Reader(bytes)
  const found: { type: number; data: Buffer }[] = []
  while (!reader.isAtEnd()) found.push({ type: reader.number(2), data: reader.vector(2) })
  return reader.failed ? undefined : found
}

// An extension that is nothing but a list of numbers of two bytes.
function listed(data: Buffer | undefined, lengthBytes: number): number[] | undefined {
  if (!data) return []
  const reader = new Reader(data)
  const numbers = numbersOf(reader.vector(lengthBytes))
  return reader.failed || !reader.isAtEnd() ? undefined : numbers
}

function protocolsOf(data: Buffer | undefined): Buffer[] | undefined {
  if (!data) return []
  const outer = new Reader(data)
  const reader = new Reader(outer.vector(2))
  const found: Buffer[] = []
  while (!reader.isAtEnd()) found.push(reader.vector(1))
  return outer.failed || !outer.isAtEnd() || reader.failed ? undefined : found
}

function numbersOf(bytes: Buffer): number[] | undefined {
  if (bytes.length % 2 === 1) return undefined
  return Array.from({ length: bytes.length / 2 }, (_, index) => bytes.readUInt16BE(index * 2))
}

/** Reads on from where it stands. Once bytes were missing it has failed, and is at its end. */
class Reader {
  #at = 0
  failed = false
  readonly #from: Buffer

  constructor(from: Buffer) {
    this.#from = from
  }

  isAtEnd(): boolean {
    return this.failed || this.#at === this.#from.length
  }

  bytes(length: number): Buffer {
    const found = this.#from.subarray(this.#at, this.#at + length)
    this.#at += length
    if (found.length === length) return found
    this.failed = true
    return Buffer.alloc(length)
  }

  number(size: number): number {
    return this.bytes(size).readUIntBE(0, size)
  }

  /** Bytes behind their own length. */
  vector(lengthBytes: number): Buffer {
    return this.bytes(this.number(lengthBytes))
  }
}
