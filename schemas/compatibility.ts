import avro from 'avsc'

/**
 * Returns the compatibility problems of an event's versions, oldest first. Every version must be able to read every
 * other (Confluent's FULL_TRANSITIVE), so added and removed fields need a default, and enums need a default symbol.
 */
export function compatibilityProblems(versions: avro.Schema[]): string[] {
  const types = versions.map((schema) => avro.Type.forSchema(schema))
  const pairs = types.flatMap((reader, r) => types.map((writer, w) => ({ reader, writer, r, w })))
  const unreadable = pairs.flatMap(({ reader, writer, r, w }) => {
    const problem = r === w ? undefined : resolutionError(reader, writer)
    return problem ? [`v${r + 1} cannot read v${w + 1}: ${problem}`] : []
  })
  const enums = versions.flatMap((schema, i) =>
    enumsWithoutDefault(schema).map((name) => `v${i + 1}: enum ${name} has no default`),
  )
  return [...unreadable, ...enums]
}

function resolutionError(reader: avro.Type, writer: avro.Type): string | undefined {
  try {
    reader.createResolver(writer)
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

// Takes the schema's JSON, because avsc's types do not expose the default of an enum.
function enumsWithoutDefault(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(enumsWithoutDefault)
  if (typeof schema !== 'object' || schema === null) return []
  const missing =
    'symbols' in schema && !('default' in schema) && 'name' in schema ? [String(schema.name)] : []
  const parts = [
    'type' in schema ? schema.type : undefined,
    'fields' in schema ? schema.fields : undefined,
    'items' in schema ? schema.items : undefined,
    'values' in schema ? schema.values : undefined,
  ]
  return [...missing, ...parts.flatMap(enumsWithoutDefault)]
}
