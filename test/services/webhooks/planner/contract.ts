import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import published from '../../../fixtures/contract/openapi.json' with { type: 'json' }

const ajv = new Ajv2020({ strict: false, allErrors: true })
addFormats.default(ajv)
ajv.addSchema(published, 'published')

/** What a payload has that the published schema does not allow; empty when there is nothing. */
export function payloadProblems(
  name: keyof typeof published.components.schemas,
  payload: unknown,
): string[] {
  const validate = ajv.getSchema(`published#/components/schemas/${name}`)
  if (!validate) throw new Error(`no schema ${name}`)
  validate(payload)
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

const isUri = ajv.compile<string>({ type: 'string', format: 'uri' })

export const isUriText = (text: string): boolean => isUri(text)
