import { once } from 'node:events'
import { connect } from 'node:tls'

/** Numbers of RFC 9113, 6. */
export const frameType = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 }
export const flag = { endStream: 1, endHeaders: 4 }

export interface Frame {
  type: number
  flags: number
  stream: number
  payload: Buffer
}

/** A connection on which a test says whatever it likes. */
export interface RawHttp2 {
  /** What the server said, in its order. */
  frames: readonly Frame[]
  send(...frames: Buffer[]): void
  /** Stops or goes on taking what comes. */
  pause(): void
  isClosed(): boolean
  closed: Promise<unknown>
  end(): void
}

export async function connectRawHttp2(
  port: number,
  settings: readonly [id: number, value: number][] = [],
): Promise<RawHttp2> {
  const socket = connect({
    ...{ port, host: '127.0.0.1', servername: 'localhost', rejectUnauthorized: false },
    ALPNProtocols: ['h2'],
  })
  socket.on('error', () => {})
  await once(socket, 'secureConnect')
  const frames: Frame[] = []
  let rest = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    rest = readFrames(Buffer.concat([rest, chunk]), frames)
  })
  socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
  socket.write(settingsFrame(settings))
  return {
    frames,
    send: (...sent) => void (socket.writable && socket.write(Buffer.concat(sent))),
    pause: () => void socket.pause(),
    isClosed: () => socket.closed,
    closed: socket.closed ? Promise.resolve() : once(socket, 'close'),
    end: () => void socket.destroy(),
  }
}

function readFrames(bytes: Buffer, into: Frame[]): Buffer<ArrayBuffer> {
  let at = 0
  while (bytes.length >= at + 9 && bytes.length >= at + 9 + bytes.readUIntBE(at, 3)) {
    const end = at + 9 + bytes.readUIntBE(at, 3)
    const stream = bytes.readUInt32BE(at + 5) & 0x7fffffff
    into.push({
      ...{ type: bytes.readUInt8(at + 3), flags: bytes.readUInt8(at + 4), stream },
      payload: bytes.subarray(at + 9, end),
    })
    at = end
  }
  return Buffer.from(bytes.subarray(at))
}

export function frameOf({ type, flags = 0, stream = 0, payload = Buffer.alloc(0) }: Partial<Frame>): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type ?? frameType.data, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

export function settingsFrame(settings: readonly [id: number, value: number][]): Buffer {
  const payload = Buffer.concat(
    settings.map(([id, value]) => {
      const pair = Buffer.alloc(6)
      pair.writeUInt16BE(id)
      pair.writeUInt32BE(value, 2)
      return pair
    }),
  )
  return frameOf({ type: frameType.settings, payload })
}

export const resetFrame = (stream: number): Buffer =>
  frameOf({ type: frameType.reset, stream, payload: Buffer.from([0, 0, 0, 8]) })

/** Fields as literals that enter no table (RFC 7541, 6.2.2). */
export const fieldBlock = (fields: readonly (readonly [string, string])[]): Buffer =>
  Buffer.concat(fields.flatMap(([name, value]) => [Buffer.from([0]), literal(name), literal(value)]))

function literal(text: string): Buffer {
  return Buffer.concat([integer(text.length, 7), Buffer.from(text, 'latin1')])
}

/** RFC 7541, 5.1. */
function integer(value: number, bits: number): Buffer {
  const most = 2 ** bits - 1
  if (value < most) return Buffer.from([value])
  const bytes = [most]
  let rest = value - most
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128)
  return Buffer.from([...bytes, rest])
}

/** A request without a body, in one frame. */
export const requestFrame = (stream: number, fields: readonly (readonly [string, string])[]): Buffer =>
  frameOf({
    ...{ type: frameType.headers, flags: flag.endStream | flag.endHeaders },
    ...{ stream, payload: fieldBlock(fields) },
  })

/** The codes of what the server refused: of streams, and of the whole connection. */
export function refusals(frames: readonly Frame[]): { resets: number[]; goaways: number[] } {
  const of = (wanted: number) => frames.filter(({ type }) => type === wanted)
  return {
    resets: of(frameType.reset).map(({ payload }) => payload.readUInt32BE()),
    goaways: of(frameType.goaway).map(({ payload }) => payload.readUInt32BE(4)),
  }
}
