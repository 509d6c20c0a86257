import {
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  hkdfSync,
} from 'node:crypto'

const [pkcs8, text] = process.argv.slice(2)
const envelope = JSON.parse(text)
const bytes = (name) => Buffer.from(envelope[name], 'base64url')

const privateKey = createPrivateKey({
  key: Buffer.from(pkcs8, 'base64'),
  format: 'der',
  type: 'pkcs8',
})
const x = envelope.ephemeral_public_key
const publicKey = createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x }, format: 'jwk' })
const secret = diffieHellman({ privateKey, publicKey })
const key = Buffer.from(hkdfSync('sha256', secret, bytes('salt'), 'foil-gate-delivery:v1', 32))
const decipher = createDecipheriv('aes-256-gcm', key, bytes('iv'))
decipher.setAuthTag(bytes('tag'))
console.log(
  Buffer.concat([decipher.update(bytes('ciphertext')), decipher.final()]).toString('utf8'),
)
