/** Type numbers of pg_type that never change (src/include/catalog/pg_type.dat). */
const types = { int4: 23, text: 25, bytea: 17 }

/**
 * Arrays in Postgres's binary format (array_recv): dimensions, has-nulls flag, element type, length, lower bound,
 * then each element with its size in bytes before it. As text, every byte of a value would be sent as two.
 */
function binaryArray(type: number, items: Buffer[]): Buffer {
  const size = items.reduce((sum, item) => sum + 4 + item.length, 20)
  const array = Buffer.allocUnsafe(size)
  let at = 0
  for (const number of [1, 0, type, items.length, 1]) at = array.writeInt32BE(number, at)
  for (const item of items) {
    at = array.writeInt32BE(item.length, at)
    at += item.copy(array, at)
  }
  return array
}

export const byteaArray = (items: Buffer[]): Buffer => binaryArray(types.bytea, items)

export const textArray = (items: string[]): Buffer =>
  binaryArray(
    types.text,
    items.map((item) => Buffer.from(item)),
  )

export function int4Array(items: number[]): Buffer {
  const array = Buffer.allocUnsafe(20 + items.length * 8)
  let at = 0
  for (const number of [1, 0, types.int4, items.length, 1]) at = array.writeInt32BE(number, at)
  for (const item of items) at = array.writeInt32BE(item, array.writeInt32BE(4, at))
  return array
}
