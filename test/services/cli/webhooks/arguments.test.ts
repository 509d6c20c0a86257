import { Command } from 'commander'
import { expect, test } from 'vitest'
import { tellUsage } from '../../../../services/cli/usage.ts'
import { defineWebhooks } from '../../../../services/cli/webhooks/command.ts'
import { cli } from '../../../support/cli.ts'

const eventId = `evt_${'0'.repeat(26)}`
/** As it might be pasted: without its end. */
const partOfSecret = 'whsec_bm90LWEtd2hvbGUtc2VjcmV0'

test.each([
  ['listen --forward nope', /'--forward <url>'.* http:\/\/ or https:\/\/\.$/m],
  ['listen --forward 127.0.0.1:3000/hooks', /'--forward <url>'.* http:\/\/ or https:\/\/\.$/m],
  ['listen --forward ftp://nope.example/', /'--forward <url>'.* http:\/\/ or https:\/\/\.$/m],
  [
    'listen --forward http://nope:hidden@localhost/',
    /'--forward <url>'.* user name or a password\.$/m,
  ],
  ['listen --secret nope', /'--secret <secret>'.* whole signing secret/],
  [`listen --no-register --secret ${partOfSecret}`, /'--secret <secret>'.* whole signing secret/],
  ['listen --no-register', /--no-register needs --secret$/m],
  ['listen --base-url notaurl', /'--base-url <url>'.* http:\/\/ or https:\/\/\.$/m],
  ['trigger --base-url notaurl', /'--base-url <url>'.* http:\/\/ or https:\/\/\.$/m],
  ['trigger --base-url http://localhost/?nope', /'--base-url <url>'.* query or a fragment\.$/m],
  ['trigger --organization foo', /'--organization <id>'.* organization \(org_\.\.\.\)\.$/m],
  ['trigger --endpoint foo', /'--endpoint <id>'.* endpoint \(we_\.\.\.\)\.$/m],
  ['dead-letters --endpoint foo', /'--endpoint <id>'.* endpoint \(we_\.\.\.\)\.$/m],
  ['dead-letters --endpoint WE_foo --skipped', /'--endpoint <id>'.* endpoint \(we_\.\.\.\)\.$/m],
  ['redeliver foo', /'event'.* event \(evt_\.\.\.\)\.$/m],
  [`redeliver ${eventId} --endpoint foo`, /'--endpoint <id>'.* endpoint \(we_\.\.\.\)\.$/m],
])('webhooks %s is refused before anything starts', async (line, message) => {
  const program = tellUsage(new Command('tidegate'), { json: true })
  defineWebhooks(program.command('webhooks'))
  const refused = program.parseAsync(['webhooks', ...line.split(' ')], { from: 'user' })
  await expect(refused).rejects.toThrow(message)
  await expect(refused).rejects.not.toThrow(/nope|hidden|bm90LWEt/)
})

test.each([
  [
    'a secret',
    ['listen', '--no-register', '--secret', 'nope'],
    /^(error: )?option '--secret <secret>'/,
  ],
  ['an id', ['dead-letters', '--endpoint', 'we_1'], /^(error: )?option '--endpoint <id>'/],
])('%s is refused in text with help, or as one JSON document', async (_, args, message) => {
  const [text, json] = await Promise.all([
    cli(['webhooks', ...args], {}),
    cli(['webhooks', ...args, '--json'], {}),
  ])
  expect(text).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(message) })
  expect(text.stderr).toContain('Usage: tidegate webhooks')
  expect(json).toMatchObject({ code: 1, stderr: '' })
  const { error } = JSON.parse(json.stdout)
  expect(error).toEqual({
    code: 'command.usage',
    message: expect.stringMatching(message),
    retryable: false,
  })
  expect(text.stderr + json.stdout).not.toContain('nope')
})
