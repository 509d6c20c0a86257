// Generates the types of @tidegate/server from an OpenAPI document on stdin. Run by `make sdk-types`.
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { json } from 'node:stream/consumers'
import openapiTS, { astToString } from 'openapi-typescript'
import { clientDescription, descriptionDigest } from './description.ts'

const part = clientDescription(await json(process.stdin))
const nodes = await openapiTS(part, { rootTypes: true, rootTypesNoSchemaPrefix: true })
const used = nodes.filter(({ name }) => !['paths', 'webhooks', '$defs'].includes(name?.text))
const lines = [
  `// Generated from /openapi.json (${descriptionDigest(part)}) by make sdk-types. Don't edit.`,
  astToString(used),
]
writeFileSync(path.join(import.meta.dirname, '../api.ts'), lines.join('\n'))
