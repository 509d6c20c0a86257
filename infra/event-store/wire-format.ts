import avro from 'avsc'

/** The Confluent wire format: 0x00, schema id as 4 bytes big-endian, Avro body (docs.confluent.io, "Wire format"). */
export const prefixBytes = 5
export const wireFormat = 0
/**
 * A variant for rows of read models, never for records: the decrypted fields replace the last field, `sealed`.
 */
export const decryptedFormat = 1

const scratch = Buffer.allocUnsafeSlow(64 * 1024)

/** Encodes `data` in the wire format. */
export function encodeWithSchemaId(id: number, type: avro.Type, data: object): Buffer {
  const value = encodeAvro(prefixBytes, type, data)
  value.writeUInt8(wireFormat, 0)
  value.writeUInt32BE(id, 1)
  return value
}

/** Returns `value` with another schema id; `value` itself if it has that id. */
export function withSchemaId(id: number, value: Buffer): Buffer {
  if (value.readUInt32BE(1) === id) return value
  const copy = Buffer.from(value)
  copy.writeUInt32BE(id, 1)
  return copy
}

/** Returns the event in the decrypted format: `personal` replaces `sealed`, which is the last field. */
export function decryptedValue(
  value: Buffer,
  { sealedBytes, personal, id }: { sealedBytes: number; personal: Buffer; id: number },
): Buffer {
  const decrypted = Buffer.concat([
    beforeSealed(value, sealedBytes),
    lengthOf(personal.length),
    personal,
  ])
  decrypted.writeUInt8(decryptedFormat, 0)
  decrypted.writeUInt32BE(id, 1)
  return decrypted
}

const lengthType = avro.Type.forSchema('int')
const lengthOf = (length: number): Buffer => encodeAvro(0, lengthType, length)

const beforeSealed = (value: Buffer, sealedBytes: number): Buffer =>
  value.subarray(0, value.length - sealedBytes - lengthOf(sealedBytes).length)

/** Returns the body without `sealed`, which is the last field. */
export const readablePart = (value: Buffer, sealedBytes: number): Buffer =>
  beforeSealed(value, sealedBytes).subarray(prefixBytes)

/**
 * Encodes `data` as Avro, after `start` unused bytes. Takes one pass up to 64 KB; avsc's own `toBuffer` encodes values
 * above 1 KB twice.
 */
export function encodeAvro(start: number, type: avro.Type, data: unknown): Buffer {
  const end = type.encode(data, scratch, start)
  if (end >= 0) return Buffer.from(scratch.subarray(0, end))
  // A negative end is the number of bytes that the buffer lacked.
  const value = Buffer.allocUnsafe(scratch.length - end)
  type.encode(data, value, start)
  return value
}
