import { afterEach, describe, expect, test, vi } from 'vitest'
import type { RegistryEntry } from '../../../services/cli/signup/gate-api.ts'
import { printServices } from '../../../services/cli/signup/run.ts'
import {
  keyTable,
  organizationTable,
  serviceTable,
  textTable,
} from '../../../services/cli/tables.ts'
import { organization } from '../../support/organization-rows.ts'
import { service } from '../gate/fixtures.ts'
import { publishableKey, secretKey } from '../organizations/fixtures.ts'

const columnsOf = (line: string) =>
  [...line].reduce((sum, character) => sum + (/[\p{sc=Han}😀]/u.test(character) ? 2 : 1), 0)
const widest = (text: string) => Math.max(...text.split('\n').map(columnsOf))

describe('a table', () => {
  const head = ['id', 'gives out', 'website']
  const id = `org_${'1'.repeat(26)}`

  test('is drawn if it fits, or if the width is unlimited', () => {
    const drawn = textTable(head, [[id, 'A\nB', null]])
    expect(drawn).toMatch(/^┌.*┐\n│ id +│ gives out │ website │\n/)
    expect(textTable(head, [[id, 'A\nB', null]], widest(drawn))).toBe(drawn)
  })

  test('is a paragraph per row if it does not fit, with whole ids', () => {
    const rows = [
      [id, 'A_KEY\nB_KEY', 'https://a.example'],
      ['two', null, 7],
    ]
    expect(textTable(head, rows, 45)).toBe(
      [
        `id         ${id}`,
        'gives out  A_KEY',
        '           B_KEY',
        'website    https://a.example',
        '',
      ]
        .concat(['id         two', 'gives out  -', 'website    7'])
        .join('\n'),
    )
    expect(textTable(head, [], 10)).toBe('None.')
  })

  test('leaves the wrapping of long cells to the terminal', () => {
    const name = `${'漢'.repeat(40)}😀e\u0301`
    expect(textTable(head, [[id, name, null]], 20)).toContain(`\ngives out  ${name}\n`)
  })
})

describe('in a terminal', () => {
  const before = process.stdout.columns
  afterEach(() => {
    process.stdout.columns = before
    vi.restoreAllMocks()
  })

  async function registry(): Promise<string> {
    const entry: RegistryEntry = {
      id: 'acme',
      name: 'Acme Incorporated',
      description: '',
      website: 'https://www.acme.example/',
      docs_url: '',
      dashboard_login_url: 'https://acme.example/login',
      sdks: [],
      env_vars: [{ name: 'Key', key: 'ACME_SOMETHING_API_KEY', secret: true }],
      branding: { verified: true },
    }
    const log = vi.spyOn(console, 'log').mockImplementation(() => {})
    const api = { baseUrl: '', services: async () => [entry, entry] }
    await printServices(api, { json: false })
    return String(log.mock.lastCall?.[0])
  }

  test.each([30, 60, 80, 120, 300])(
    'of %d columns, tables fit or become paragraphs',
    async (columns) => {
      process.stdout.columns = columns
      const tables = [
        keyTable([secretKey, publishableKey]),
        organizationTable([organization], { secret: 600, publishable: 3000 }),
        serviceTable([service]),
        await registry(),
      ]
      for (const table of tables)
        if (table.startsWith('┌')) expect(widest(table)).toBeLessThanOrEqual(columns)
      expect(tables[0]).toContain(secretKey.id)
    },
  )
})
