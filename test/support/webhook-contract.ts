import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import published from '../fixtures/contract/openapi.json' with { type: 'json' }

const { components } = published
const { schemas } = components
// The description has a different id format for webhook events than service.md, whose evt_ ids are used.
const document = {
  ...published,
  components: { ...components, schemas: { ...schemas, WebhookEventId: schemas.EventId } },
}
const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema(document, 'contract')

/** Returns the violations of the published schema in a delivery's body; empty if there are none. */
export function bodyProblems(name: keyof typeof schemas, body: string): string[] {
  const validate = ajv.getSchema(`contract#/components/schemas/${name}`)
  if (!validate) throw new Error(`no schema ${name}`)
  validate(JSON.parse(body))
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}
