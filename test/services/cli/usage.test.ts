import { expect, test } from 'vitest'
import { wantsJson } from '../../../services/cli/usage.ts'
import { cli } from '../../support/cli.ts'

const pasted = `sk_live_${'0'.repeat(38)}`

test.each([
  ['an unknown option', ['keys', 'list', '--colour'], /unknown option '--colour'/],
  ['a key', ['keys', 'create', 'acme', '--type', pasted], /'sk_live_\.\.\.' is invalid/],
  ['a signing secret', ['webhooks', 'redeliver', 'evt_1', 'whsec_AA+/A='], /evt_1, whsec_\.\.\.\./],
])('%s is rejected in a sentence, or as one JSON document', async (_, args, message) => {
  const [text, json] = await Promise.all([cli(args, {}), cli([...args, '--json'], {})])
  expect(text).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) })
  expect(text.stderr).toContain('Add --help for usage.')
  expect(json).toMatchObject({ code: 1, stderr: '' })
  expect(JSON.parse(json.stdout).error).toEqual({
    code: 'command.usage',
    message: expect.stringMatching(/^(?!error)/),
    retryable: false,
  })
  expect(json.stdout).toMatch(message)
  expect(text.stderr + json.stdout).not.toContain(pasted)
})

test('an error before the first request is JSON, too', async () => {
  const { code, stdout, stderr } = await cli(['simulate', '--json'], { DATA_DIR: '/nowhere' })
  expect([code, stderr]).toEqual([1, ''])
  expect(JSON.parse(stdout).error).toMatchObject({
    code: 'command.failed',
    message: expect.stringContaining('--base-url'),
  })
})

test('help is not a failure, and shows the default mix as an argument', async () => {
  const { code, stdout } = await cli(['simulate', '--help', '--json'], {})
  expect(code).toBe(0)
  expect(stdout.replaceAll(/\s+/g, ' ')).toContain('(default: web=70,ios=15,android=15)')
})

test('arguments after -- are not options', () => {
  expect(wantsJson(['org', 'list', '--json'])).toBe(true)
  expect(wantsJson(['org', 'limits', '--', '--json'])).toBe(false)
})
