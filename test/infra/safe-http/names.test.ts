import { expect, it } from 'vitest'
import { addressRecords } from '../../support/dns-server.ts'
import { createTestClient, httpText, postTo, startDns, startRawReceiver } from './raw-receiver.ts'

const dnsTimeoutMs = 1000

async function withDns(replyTo: Parameters<typeof startDns>[0]) {
  const receiver = await startRawReceiver(({ socket }) => socket.write(httpText(200)))
  const dns = await startDns(replyTo)
  const client = createTestClient({ dnsServers: [dns.address], dnsTimeoutMs })
  const post = (host: string) => client.post(postTo(`http://${host}:${receiver.port}/`))
  return { dns, receiver, post }
}

it('resolves A and AAAA for a connection', async () => {
  const { dns, receiver, post } = await withDns((question) =>
    addressRecords(question, ['127.0.0.1']),
  )
  expect(await post('receiver.example')).toMatchObject({ status: 200 })
  expect(dns.questions.sort()).toEqual(['A receiver.example', 'AAAA receiver.example'])
  expect(receiver.requests[0]).toContain(`\r\nhost: receiver.example:${receiver.port}\r\n`)
})

it('resolves localhost and its subdomains to this machine without DNS', async () => {
  const { dns, post } = await withDns(() => 'NXDOMAIN')
  for (const host of ['localhost', 'LOCALHOST', 'localhost.', 'app.localhost']) {
    expect(await post(host)).toMatchObject({ status: 200 })
  }
  expect(dns.questions).toEqual([])
})

it.each<[string, string, Parameters<typeof startDns>[0]]>([
  ['dns', 'does not exist', () => 'NXDOMAIN'],
  ['dns', 'has no address', () => []],
  ['dns', 'fails', () => 'SERVFAIL'],
  ['dns', 'times out', () => 'silent'],
  ['dns', 'has no A record, and AAAA times out', ({ type }) => (type === 'A' ? [] : 'silent')],
  ['address', 'has a private address', (question) => addressRecords(question, ['10.1.2.3'])],
])('%s: reports the same message for a name that %s', async (reason, _title, replyTo) => {
  const { post, receiver } = await withDns(replyTo)
  const outcome = await post('receiver.example')
  const message = 'No address that webhooks are sent to was found for the host.'
  expect(outcome).toMatchObject({ kind: 'failure', reason, message })
  expect(outcome.durationMs).toBeLessThan(dnsTimeoutMs + 2000)
  expect(receiver.connections).toBe(0)
})

it.each(['silent', 'SERVFAIL'] as const)(
  'connects over IPv4 if the reply to AAAA is %s',
  async (reply) => {
    const { post } = await withDns((question) =>
      question.type === 'A' ? addressRecords(question, ['127.0.0.1']) : reply,
    )
    expect(await post('receiver.example')).toMatchObject({ status: 200 })
  },
)

it('follows aliases, and uses TCP for a long reply', async () => {
  const many = Array.from({ length: 100 }, (_, index) => `127.0.1.${index}`)
  const { post } = await withDns((question) =>
    question.type === 'A'
      ? [
          { name: question.name, type: 'CNAME', data: 'alias.example' },
          ...addressRecords({ ...question, name: 'alias.example' }, ['127.0.0.1', ...many]),
        ]
      : [],
  )
  expect(await post('receiver.example')).toMatchObject({ status: 200 })
})

it('connects to the second address if the first refuses', async () => {
  const { post } = await withDns((question) => addressRecords(question, ['127.0.0.9', '127.0.0.1']))
  expect(await post('receiver.example')).toMatchObject({ status: 200 })
})
