import { describe, expect, it } from 'vitest'
import { createAddressRules, webhookUrlProblem } from '../../../infra/safe-http/addresses.ts'

const strict = createAddressRules([])
const loopbackToo = createAddressRules(['127.0.0.0/8'])

describe('a receiver on the internet', () => {
  it.each([
    'https://example.com',
    'https://example.com/hooks?a=b&c=%20',
    'https://example.com:443/',
    'https://example.com:80/',
    'https://example.com:1024/',
    'https://example.com:65535/',
    'https://example.com./',
    'https://a_b.example.com/',
    'https://xn--bcher-kva.example/',
    'https://bücher.example/',
    'HTTPS://EXAMPLE.COM/',
    'https://localhost.example.com/',
    'https://local.com/',
    'https://1.2.3.4.example.com/',
    `https://example.com/${'a'.repeat(1980)}`,
  ])('%s is fine', (url) => {
    expect(webhookUrlProblem(url, strict)).toBeUndefined()
    expect(webhookUrlProblem(url, loopbackToo)).toBeUndefined()
  })
})

const bad: [string, string][] = [
  ['', 'absolute'],
  ['example.com', 'absolute'],
  ['//example.com/', 'absolute'],
  ['https://', 'absolute'],
  ['https://example.com:65536/', 'absolute'],
  ['https://exa<mple.com/', 'absolute'],
  ['https://[fe80::1%25eth0]/', 'absolute'],
  ['https://1.2.3.4.5/', 'absolute'],
  ['https://256.1.1.1/', 'absolute'],
  [' https://example.com/', 'white space'],
  ['https://example.com/ ', 'white space'],
  ['https://exam\tple.com/', 'white space'],
  ['https://example.com/\u0000', 'white space'],
  ['https:\\\\example.com\\', 'backslash'],
  ['https://example.com\\@127.0.0.1/', 'backslash'],
  ['ftp://example.com/', 'https'],
  ['ws://example.com/', 'https'],
  ['file:///etc/passwd', 'https'],
  ['javascript:alert(1)', 'https'],
  ['data:text/plain,x', 'https'],
  ['https://user@example.com/', 'user name'],
  ['https://:pass@example.com/', 'user name'],
  ['https://example.com@127.0.0.1/', 'user name'],
  ['https://example.com/#part', 'fragment'],
  ['https://example.com/#', 'fragment'],
  ['https://example.com:0/', 'port'],
  ['https://example.com:22/', 'port'],
  ['https://example.com:81/', 'port'],
  ['https://example.com:1023/', 'port'],
  ['https://example..com/', 'valid name'],
  ['https://.example.com/', 'valid name'],
  ['https://example.com../', 'valid name'],
  [`https://${'a.'.repeat(150)}com/`, 'valid name'],
  ['https://8.8.8.8/', 'IP address'],
  ['https://[2001:4860:4860::8888]/', 'IP address'],
  [`https://example.com/${'a'.repeat(1981)}`, '2000'],
  [`https://example.com/${'ä'.repeat(900)}`, '2000'],
]

describe('a URL that nobody can use', () => {
  it.each(bad)('%j is refused, because of: %s', (url, word) => {
    expect(webhookUrlProblem(url, strict)).toContain(word)
    expect(webhookUrlProblem(url, loopbackToo)).toContain(word)
  })
})

describe('without exceptions', () => {
  it.each([
    ['http://example.com/', 'https'],
    ['https://localhost/', 'this machine'],
    ['https://LOCALHOST:8443/', 'this machine'],
    ['https://localhost./', 'this machine'],
    ['https://app.localhost/', 'this machine'],
    ['https://ｌocalhost/', 'this machine'],
    ['https://intranet/', 'public internet'],
    ['https://printer.local/', 'public internet'],
    ['https://metadata.google.internal/', 'public internet'],
    ['https://router.home.arpa/', 'public internet'],
    ['https://router.lan./', 'public internet'],
    ['https://expyuzz4wqqyqhjn.onion/', 'public internet'],
  ])('%s is refused', (url, word) => {
    expect(webhookUrlProblem(url, strict)).toContain(word)
  })
})

describe('with an exception for 127.0.0.0/8', () => {
  it.each([
    'http://127.0.0.1:9000/hook',
    'https://127.0.0.1/',
    'http://0x7f.1/',
    'http://[::ffff:127.0.0.1]/',
    'http://localhost:9000/',
    'http://app.localhost/',
    'http://receiver/',
    'http://receiver.internal:8080/',
    'http://example.com/',
  ])('%s is fine', (url) => {
    expect(webhookUrlProblem(url, loopbackToo)).toBeUndefined()
  })

  it.each(['http://10.0.0.1/', 'http://[::1]/', 'http://169.254.169.254/', 'http://0/'])(
    '%s is refused',
    (url) => {
      expect(webhookUrlProblem(url, loopbackToo)).toContain('IP address')
    },
  )

  it('localhost is refused where the exception is for another network', () => {
    const rules = createAddressRules(['10.0.0.0/8'])
    expect(webhookUrlProblem('http://localhost/', rules)).toContain('this machine')
    expect(webhookUrlProblem('http://10.1.2.3/', rules)).toBeUndefined()
  })
})
