import avro from 'avsc'

/**
 * What is wrong with an event's versions, oldest first: each must be able to read what any other wrote (Confluent's
 * FULL_TRANSITIVE). So a field that is added or removed needs a default, and every enum a default symbol, or no
 * symbol could ever be added to it.
 */
export function compatibilityProblems(versions: avro.Schema[]): string[] {
  const types = versions.map((schema) => avro.Type.forSchema(schema))
  const pairs = types.flatMap((reader, r) => types.map((writer, w) => ({ reader, writer, r, w })))
  const unreadable = pairs.flatMap(({ reader, writer, r, w }) => {
    const problem = r === w ? undefined : whyNot(reader, writer)
    return problem ? [`v${r + 1} cannot read v${w + 1}: ${problem}`] : []
  })
  const enums = versions.flatMap((schema, i) =>
    enumsWithoutDefault(schema).map((name) => `v${i + 1}: enum ${name} has no default`),
  )
  return [...unreadable, ...enums]
}

function whyNot(reader: avro.Type, writer: avro.Type): string | undefined {
  try {
    reader.createResolver(writer)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

// avsc's types do not tell an enum's default, so this reads the schema itself.
function enumsWithoutDefault(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(enumsWithoutDefault)
  if (typeof schema !== 'object' || schema === null) return []
  const own =
    'symbols' in schema && !('default' in schema) && 'name' in schema ? [String(schema.name)] : []
  const parts = [
    'type' in schema ? schema.type : undefined,
    'fields' in schema ? schema.fields : undefined,
    'items' in schema ? schema.items : undefined,
    'values' in schema ? schema.values : undefined,
  ]
  return [...own, ...parts.flatMap(enumsWithoutDefault)]
}
