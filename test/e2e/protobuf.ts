/** Values by field number; numbers are eight bytes, little-endian. */
export type Message = Map<number, Buffer[]>

/** Reads one message (protobuf.dev/programming-guides/encoding): what a field means is the caller's knowledge. */
export function readMessage(bytes: Buffer): Message {
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

export const values = (message: Message, field: number): Buffer[] => message.get(field) ?? []
export const messages = (message: Message, field: number): Message[] =>
  values(message, field).map(readMessage)
export const text = (message: Message, field: number): string =>
  values(message, field)[0]?.toString('utf8') ?? ''
