import { createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'

/** PEM, as tls.createServer and the client's `ca` take them. */
export interface Certificate {
  key: string
  cert: string
}

export interface Authority {
  /** Trusted by who has it as `ca`. */
  ca: string
  issue(options: { host: string; notBefore?: Date; notAfter?: Date }): Certificate
}

const dayMs = 24 * 60 * 60 * 1000

/** A certificate authority of this test run. Certificates are written by hand (RFC 5280): Node can only read them. */
export function createAuthority(name = 'Test authority'): Authority {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const period = { notBefore: new Date(Date.now() - dayMs), notAfter: new Date(Date.now() + dayMs) }
  const isAuthority = extension('2.5.29.19', sequence(boolean(true)))
  const own = { subject: name, issuer: name, signer: keys.privateKey, extensions: [isAuthority] }
  return {
    ca: certificate({ ...period, ...own, publicKey: keys.publicKey }),
    issue({ host, ...dates }) {
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const names = extension('2.5.29.17', sequence(subjectName(host)))
      const signed = { subject: host, issuer: name, signer: keys.privateKey, extensions: [names] }
      return {
        key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
        cert: certificate({ ...period, ...dates, ...signed, publicKey }),
      }
    },
  }
}

interface Contents {
  subject: string
  issuer: string
  notBefore: Date
  notAfter: Date
  publicKey: KeyObject
  signer: KeyObject
  extensions: Buffer[]
}

function certificate(contents: Contents): string {
  const algorithm = sequence(objectId('1.2.840.10045.4.3.2'))
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    distinguishedName(contents.issuer),
    sequence(time(contents.notBefore), time(contents.notAfter)),
    distinguishedName(contents.subject),
    contents.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, sequence(...contents.extensions)),
  )
  const signature = createSign('sha256').update(body).sign(contents.signer)
  const whole = sequence(body, algorithm, der(0x03, Buffer.from([0]), signature))
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

/** dNSName, or iPAddress of an IPv4 address. */
function subjectName(host: string): Buffer {
  const isAddress = /^[\d.]+$/.test(host)
  return isAddress ? der(0x87, Buffer.from(host.split('.').map(Number))) : der(0x82, Buffer.from(host))
}

function distinguishedName(commonName: string): Buffer {
  const attribute = sequence(objectId('2.5.4.3'), der(0x0c, Buffer.from(commonName)))
  return sequence(der(0x31, attribute))
}

/** GeneralizedTime, which every year fits in. */
function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/\D/g, '').slice(0, 14)
  return der(0x18, Buffer.from(`${digits}Z`))
}

function extension(id: string, value: Buffer): Buffer {
  return sequence(objectId(id), der(0x04, value))
}

function boolean(value: boolean): Buffer {
  return der(0x01, Buffer.from([value ? 0xff : 0]))
}

function integer(bytes: Buffer): Buffer {
  return der(0x02, bytes)
}

function sequence(...parts: Buffer[]): Buffer {
  return der(0x30, ...parts)
}

function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  const groups = rest.flatMap((number) => {
    const digits = [number & 0x7f]
    for (let left = number >>> 7; left > 0; left >>>= 7) digits.unshift((left & 0x7f) | 0x80)
    return digits
  })
  return der(0x06, Buffer.from([first * 40 + second, ...groups]))
}

/** Tag, length, contents. ITU-T X.690 */
function der(tag: number, ...parts: Buffer[]): Buffer {
  const contents = Buffer.concat(parts)
  const { length } = contents
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), contents])
  const size = length < 0x100 ? [length] : [length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length, ...size]), contents])
}
