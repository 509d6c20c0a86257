import { registrySubject } from '../../infra/event-store/registry.ts'
import { readFactsSchemas, readSchemaFiles } from '../../schemas/generate.ts'

/** A version of a subject, as a Schema Registry numbers them. */
export interface ServedSchema {
  subject: string
  version: number
  id: number
  /** The schema's JSON. */
  schema: string
}

/** Every schema of this release under the id that records carry, as it would be registered. */
export function servedSchemas(idOf: (key: string) => number, topicPrefix: string): ServedSchema[] {
  const versions = new Map<string, number>()
  return [...readSchemaFiles(), ...readFactsSchemas()].map((file) => {
    const subject = registrySubject(file, topicPrefix)
    const version = (versions.get(subject) ?? 0) + 1
    versions.set(subject, version)
    return { subject, version, id: idOf(file.key), schema: JSON.stringify(file.schema) }
  })
}
