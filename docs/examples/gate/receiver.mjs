import {
  createCipheriv,
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { createServer } from 'node:http'

const secrets = process.env.WEBHOOK_SECRETS.split(',')
const maxBodyBytes = 1024 * 1024
const accounts = new Map()

async function createAccount(signup) {
  console.log('created', signup.gate_session_id, signup.gate_account_id)
  return { ACME_API_KEY: `acme_${randomBytes(24).toString('hex')}` }
}

function isGenuine(headers, body) {
  const {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures,
  } = headers
  if (!id || !signatures || !/^\d+$/.test(timestamp ?? '')) return false
  if (Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) return false
  return secrets.some((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
    const digest = createHmac('sha256', key)
      .update(`${id}.${timestamp}.`)
      .update(body)
      .digest('base64')
    const expected = Buffer.from(`v1,${digest}`)
    return signatures.split(' ').some((entry) => {
      const given = Buffer.from(entry)
      return given.length === expected.length && timingSafeEqual(given, expected)
    })
  })
}

function seal(outputs, { key_id, public_key }) {
  const { privateKey, publicKey } = generateKeyPairSync('x25519')
  const theirs = createPublicKey({
    key: { kty: 'OKP', crv: 'X25519', x: public_key },
    format: 'jwk',
  })
  const [salt, iv] = [randomBytes(32), randomBytes(12)]
  const secret = diffieHellman({ privateKey, publicKey: theirs })
  const key = Buffer.from(hkdfSync('sha256', secret, salt, 'foil-gate-delivery:v1', 32))
  const cipher = createCipheriv('aes-256-gcm', key, iv)
  const text = JSON.stringify({ version: 1, outputs })
  const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return {
    version: 1,
    algorithm: 'x25519-hkdf-sha256/aes-256-gcm',
    key_id,
    ephemeral_public_key: publicKey.export({ format: 'jwk' }).x,
    salt: salt.toString('base64url'),
    iv: iv.toString('base64url'),
    ciphertext: ciphertext.toString('base64url'),
    tag: cipher.getAuthTag().toString('base64url'),
  }
}

async function answerTo({ type, data }) {
  if (type !== 'gate.session.approved') return undefined
  const id = data.gate_session_id
  if (!accounts.has(id)) accounts.set(id, createAccount(data))
  const outputs = await accounts.get(id).catch((error) => {
    accounts.delete(id)
    throw error
  })
  return { encrypted_delivery: seal(outputs, data.delivery) }
}

const server = createServer(async (request, response) => {
  try {
    const length = Number(request.headers['content-length'])
    if (!(length <= maxBodyBytes)) return response.writeHead(413, { connection: 'close' }).end()
    const body = Buffer.concat(await request.toArray())
    if (!isGenuine(request.headers, body)) return response.writeHead(401).end()
    const answer = await answerTo(JSON.parse(body.toString('utf8')))
    if (!answer) return response.writeHead(204).end()
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  } catch (error) {
    console.error(error)
    response.writeHead(500).end()
  }
})
server.listen(Number(process.env.PORT ?? 3000))
