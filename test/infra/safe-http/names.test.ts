import { expect, it } from 'vitest'
import { addressRecords } from '../../support/dns-server.ts'
import { answerOf, createTestClient, postTo, startNames, startRawReceiver } from './raw-receiver.ts'

const dnsTimeoutMs = 1000

async function withDns(replyTo: Parameters<typeof startNames>[0]) {
  const receiver = await startRawReceiver(({ socket }) => socket.write(answerOf(200)))
  const dns = await startNames(replyTo)
  const client = createTestClient({ dnsServers: [dns.address], dnsTimeoutMs })
  const post = (host: string) => client.post(postTo(`http://${host}:${receiver.port}/`))
  return { dns, receiver, post }
}

it('names are resolved by DNS for each connection, A and AAAA', async () => {
  const { dns, receiver, post } = await withDns((question) =>
    addressRecords(question, ['127.0.0.1']),
  )
  expect(await post('receiver.example')).toMatchObject({ status: 200 })
  expect(dns.questions.sort()).toEqual(['A receiver.example', 'AAAA receiver.example'])
  expect(receiver.requests[0]).toContain(`\r\nhost: receiver.example:${receiver.port}\r\n`)
})

it('localhost and all below it are this machine without asking DNS', async () => {
  const { dns, post } = await withDns(() => 'NXDOMAIN')
  for (const host of ['localhost', 'LOCALHOST', 'localhost.', 'app.localhost']) {
    expect(await post(host)).toMatchObject({ status: 200 })
  }
  expect(dns.questions).toEqual([])
})

it.each<[string, string, Parameters<typeof startNames>[0]]>([
  ['dns', 'do not exist', () => 'NXDOMAIN'],
  ['dns', 'have no address', () => []],
  ['dns', 'fail', () => 'SERVFAIL'],
  ['dns', 'are never answered', () => 'silent'],
  ['dns', 'have no A, and AAAA is never answered', ({ type }) => (type === 'A' ? [] : 'silent')],
  ['address', 'lead to a private address', (question) => addressRecords(question, ['10.1.2.3'])],
])('%s: names %s, which their owner is not told', async (reason, _what, replyTo) => {
  const { post, receiver } = await withDns(replyTo)
  const outcome = await post('receiver.example')
  const message = 'No address that webhooks are sent to was found for the host.'
  expect(outcome).toMatchObject({ kind: 'failure', reason, message })
  expect(outcome.durationMs).toBeLessThan(dnsTimeoutMs + 2000)
  expect(receiver.connections).toBe(0)
})

it.each(['silent', 'SERVFAIL'] as const)(
  'names are reached by IPv4 when AAAA is answered by %s',
  async (reply) => {
    const { post } = await withDns((question) =>
      question.type === 'A' ? addressRecords(question, ['127.0.0.1']) : reply,
    )
    expect(await post('receiver.example')).toMatchObject({ status: 200 })
  },
)

it('names are followed along aliases, and by TCP when the answer is long', async () => {
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

it('names are reached at another address when nobody listens at the first', async () => {
  const { post } = await withDns((question) => addressRecords(question, ['127.0.0.9', '127.0.0.1']))
  expect(await post('receiver.example')).toMatchObject({ status: 200 })
})
