import avro from 'avsc'

/** The Confluent wire format: 0x00, schema id as 4 bytes big-endian, Avro body (docs.confluent.io, "Wire format"). */
export const prefixBytes = 5
export const wireFormat = 0
/** The same, where the last field has what was encrypted: rows of read models, and no record. */
export const openedFormat = 1

const scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** `data` as the schema of `id` has it. */
export function encodeUnder(id: number, type: avro.Type, data: object): Buffer {
  const value = encodeBehind(prefixBytes, type, data)
  value.writeUInt8(wireFormat, 0)
  value.writeUInt32BE(id, 1)
  return value
}

/** `value` under another schema id. The same where it has that already. */
export function underId(id: number, value: Buffer): Buffer {
  if (value.readUInt32BE(1) === id) return value
  const copy = Buffer.from(value)
  copy.writeUInt32BE(id, 1)
  return copy
}

/** The format of an event that was encrypted, with `personal` in place of `sealed`, which is the last field. */
export function openedValue(
  value: Buffer,
  { sealedBytes, personal, id }: { sealedBytes: number; personal: Buffer; id: number },
): Buffer {
  const opened = Buffer.concat([
    beforeSealed(value, sealedBytes),
    lengthOf(personal.length),
    personal,
  ])
  opened.writeUInt8(openedFormat, 0)
  opened.writeUInt32BE(id, 1)
  return opened
}

const lengthType = avro.Type.forSchema('int')
const lengthOf = (length: number): Buffer => encodeBehind(0, lengthType, length)

const beforeSealed = (value: Buffer, sealedBytes: number): Buffer =>
  value.subarray(0, value.length - sealedBytes - lengthOf(sealedBytes).length)

/** The body without `sealed`, which is the last field. */
export const readablePart = (value: Buffer, sealedBytes: number): Buffer =>
  beforeSealed(value, sealedBytes).subarray(prefixBytes)

/** In one go for up to 64 KB, where avsc's own `toBuffer` writes twice what is over 1 KB. `start` bytes are left free. */
export function encodeBehind(start: number, type: avro.Type, data: unknown): Buffer {
  const end = type.encode(data, scratch, start)
  if (end >= 0) return Buffer.from(scratch.subarray(0, end))
  // A negative end says by how many bytes it was too small.
  const value = Buffer.allocUnsafe(scratch.length - end)
  type.encode(data, value, start)
  return value
}
