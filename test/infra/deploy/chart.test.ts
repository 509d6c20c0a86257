import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { readConfig, settingNames } from '../../../infra/config.ts'
import { allRoles } from '../../../services/server/roles.ts'
import { root } from '../../support/test-projects.ts'

interface Schema {
  properties: {
    secrets: { properties: { settings: { items: { enum: string[] } } } }
    settings: { propertyNames: { enum: string[] } }
    roles: { required: string[] }
  }
}

const read = (file: string) => readFile(path.join(root, file), 'utf8')
/** Settings that the image and the chart set. */
const fixed = [
  'CONSOLE_PORT',
  'DATABASE_MAX_CONNECTIONS',
  'DATA_DIR',
  'HOST',
  'METRICS_PORT',
  'PORT',
  'SCHEMAS_PORT',
]

test('the chart accepts every setting, and secret ones only from a Secret', async () => {
  const { properties }: Schema = JSON.parse(await read('infra/deploy/chart/values.schema.json'))
  const secret = properties.secrets.properties.settings.items.enum
  const plain = properties.settings.propertyNames.enum
  expect([...fixed, ...secret, ...plain].sort()).toEqual([...settingNames].sort())
  for (const name of secret)
    expect(() => readConfig({ [`${name}_FILE`]: '/nowhere' })).toThrow(`${name}_FILE`)
  for (const name of plain) expect(() => readConfig({ [`${name}_FILE`]: '/nowhere' })).not.toThrow()
  expect(properties.roles.required.sort()).toEqual([...allRoles].sort())
})

test('the chart has the version of the program', async () => {
  const { version }: { version: string } = JSON.parse(await read('package.json'))
  expect(parse(await read('infra/deploy/chart/Chart.yaml'))).toMatchObject({
    version,
    appVersion: version,
  })
})
