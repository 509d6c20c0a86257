import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import published from '../fixtures/contract/openapi.json' with { type: 'json' }

const { components } = published
const { schemas } = components
// The description gives webhook events ids of a form of their own; service.md, which is followed, gives them evt_ ids.
const document = {
  ...published,
  components: { ...components, schemas: { ...schemas, WebhookEventId: schemas.EventId } },
}
const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema(document, 'contract')

/** What a delivery's body has that the published schema of that name does not allow; empty when there is nothing. */
export function bodyProblems(name: keyof typeof schemas, body: string): string[] {
  const validate = ajv.getSchema(`contract#/components/schemas/${name}`)
  if (!validate) throw new Error(`no schema ${name}`)
  validate(JSON.parse(body))
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}
