import avro from 'avsc'
import fc from 'fast-check'

/** Returns arbitrary values of an Avro type, with longs up to 2^52, which avsc encodes exactly. */
export function valuesOf(type: avro.Type): fc.Arbitrary<unknown> {
  const { types } = avro
  if (type instanceof types.RecordType) {
    // The codec writes `sealed`.
    const fields = type.fields.filter(({ name }) => name !== 'sealed')
    return fc.record(Object.fromEntries(fields.map((field) => [field.name, valuesOf(field.type)])))
  }
  if (type instanceof types.EnumType) return fc.constantFrom(...type.symbols)
  if (type instanceof types.ArrayType) return fc.array(valuesOf(type.itemsType), { maxLength: 4 })
  if (type instanceof types.MapType)
    return fc.dictionary(mapKey, valuesOf(type.valuesType), { maxKeys: 4 })
  if (type instanceof types.UnwrappedUnionType) return fc.oneof(...type.types.map(valuesOf))
  return primitive(type.typeName)
}

const text = fc.string({ unit: 'binary', maxLength: 40 })
// avsc reads maps into plain objects, which cannot have this key.
const mapKey = text.filter((key) => key !== '__proto__')

function primitive(name: string): fc.Arbitrary<unknown> {
  switch (name) {
    case 'string':
      return text
    case 'int':
      return fc.integer()
    case 'long':
      return fc.integer({ min: -(2 ** 52), max: 2 ** 52 })
    case 'double':
      return fc.double({ noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'bytes':
      return fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes))
    default:
      throw new Error(`no values for type ${name}`)
  }
}
