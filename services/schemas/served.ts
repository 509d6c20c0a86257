import { registrySubject } from '../../infra/event-store/registry.ts'
import { readFactsSchemas, readSchemaFiles } from '../../schemas/generate.ts'

/** Version of a subject in a Schema Registry. */
export interface ServedSchema {
  subject: string
  version: number
  id: number
  /** Avro schema as JSON. */
  schema: string
}

/**
 * Returns every schema of this release, with the id that records carry and the version that a registry would assign.
 */
export function servedSchemas(idOf: (key: string) => number, topicPrefix: string): ServedSchema[] {
  const versions = new Map<string, number>()
  return [...readSchemaFiles(), ...readFactsSchemas()].map((file) => {
    const subject = registrySubject(file, topicPrefix)
    const version = (versions.get(subject) ?? 0) + 1
    versions.set(subject, version)
    return { subject, version, id: idOf(file.key), schema: JSON.stringify(file.schema) }
  })
}
