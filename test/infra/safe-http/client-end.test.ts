import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { startDnsServer } from '../../support/dns-server.ts'
import { eventually } from '../../support/eventually.ts'
import { afterwards, answerOf, createTestClient, postTo, startRawReceiver } from './raw-receiver.ts'

describe('the end of a client', () => {
  it('ends what is under way, and leaves no connection', async () => {
    const receiver = await startRawReceiver(({ socket, text }) => {
      if (text.includes('/fast')) socket.write(answerOf(200))
    })
    const dns = await startDnsServer(() => 'silent')
    afterwards(() => dns.close())
    const client = createTestClient({ dnsServers: [dns.address] })
    const url = `http://127.0.0.1:${receiver.port}`
    expect(await client.post(postTo(`${url}/fast`))).toMatchObject({ status: 200 })
    const posts = [client.post(postTo(`${url}/slow`)), client.post(postTo('http://unanswered.example/'))]
    await eventually(() => expect([receiver.requests.length, dns.questions.length]).toEqual([2, 2]))
    const started = performance.now()
    await client.close()
    for (const outcome of await Promise.all(posts)) {
      expect(outcome).toMatchObject({ kind: 'failure', reason: 'reset', message: 'Sending was stopped.' })
    }
    expect(performance.now() - started).toBeLessThan(1000)
    await eventually(() => expect(receiver.sockets.size).toBe(0))
    expect(await client.post(postTo(`${url}/fast`))).toMatchObject({ kind: 'failure', reason: 'reset' })
    await client.close()
  })

  it('leaves no handle behind, whatever came of the posts', async () => {
    const receiver = await startRawReceiver(({ socket, text }) => {
      if (text.includes('/ok')) socket.write(answerOf(200))
      if (text.includes('/endless')) socket.write(`HTTP/1.1 200 X\r\n\r\n${'x'.repeat(100_000)}`)
      if (text.includes('/reset')) socket.resetAndDestroy()
    })
    await turn()
    const before = handles()
    const client = createTestClient({ timeoutMs: 300 })
    const paths = Array.from({ length: 25 }, () => ['/ok', '/endless', '/reset', '/silent']).flat()
    await Promise.all(paths.map((path) => client.post(postTo(`http://127.0.0.1:${receiver.port}${path}`))))
    await client.close()
    // The receiver's own sockets are among them.
    await eventually(() => {
      const after = handles()
      for (const kind of Object.keys(after)) expect(after[kind], kind).toBeLessThanOrEqual(before[kind] ?? 0)
    })
  })
})

/** How many of each kind keep the process alive. */
function handles(): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo()) {
    if (/TCP|TLS|Timeout|Immediate|UDP/.test(kind)) counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}
