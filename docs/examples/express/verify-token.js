import { createDecipheriv, createHash } from 'node:crypto'
import { inflateSync } from 'node:zlib'

// The layout is in docs/guide/server.md.
const label = 'foil-sealed-results-v2\0'
const [header, recipient, tag] = [19, 92, 16]
const maxAgeMs = 5 * 60_000

// More than one process? Then they share this, as a table with a unique key.
const used = new Map()

/** What the service decided about the session. Throws where the token is not for this key, too old, or was used before. */
export function verifyToken(token, secretKey) {
  const payload = openToken(token, secretKey)
  const { event_id: id, evaluated_at: at } = payload.decision
  const now = Date.now()
  if (!(Math.abs(now - Date.parse(at)) < maxAgeMs)) throw new Error('the token is too old')
  for (const [known, until] of used) if (until < now) used.delete(known)
  if (used.has(id)) throw new Error('the token was used before')
  used.set(id, now + 2 * maxAgeMs)
  return payload
}

/** Throws where the token is not for this key, or was changed. */
export function openToken(token, secretKey) {
  const data = Buffer.from(String(token), 'base64')
  const hash = createHash('sha256').update(secretKey).digest('hex')
  const key = sha256(`${hash}\0sealed-results`)
  const end = header + data.readUInt32BE(15) + tag
  const recipients = data.readUInt16BE(1)
  if (data[0] !== 2 || recipients < 1 || data.length !== end + recipients * recipient)
    throw new Error('not a sealed token')
  const ids = Array.from({ length: recipients }, (_, i) => part(data, end + i * recipient, 32))
  const ownId = sha256(`${hash}\0sealed-results-recipient-id`)
  const own = ids.findIndex((id) => id.equals(ownId))
  if (own < 0) throw new Error('sealed to other keys')
  const at = end + own * recipient + 32
  const sealedKey = part(data, at + 12, recipient - 44)
  const contentKey = decrypt(sealedKey, {
    key,
    nonce: part(data, at, 12),
    bound: [`${label}recipient\0`, ownId],
  })
  const bound = [`${label}payload\0`, part(data, 0, header), ...ids]
  const plain = decrypt(part(data, header, end - header), {
    key: contentKey,
    nonce: part(data, 3, 12),
    bound,
  })
  return JSON.parse(inflateSync(plain).toString())
}

function part(data, start, length) {
  return data.subarray(start, start + length)
}

function sha256(text) {
  return createHash('sha256').update(text).digest()
}

function decrypt(sealed, { key, nonce, bound }) {
  const cipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tag })
  cipher.setAAD(Buffer.concat(bound.map((piece) => Buffer.from(piece))))
  cipher.setAuthTag(sealed.subarray(-tag))
  return Buffer.concat([cipher.update(sealed.subarray(0, -tag)), cipher.final()])
}
