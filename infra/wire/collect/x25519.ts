import { keyBytes } from './protocol.ts'

// X25519 of RFC 7748, sections 4.1 and 5. It is for pages whose browser has none, which make one key each, so that it is
// short rather than quick. As all arithmetic of BigInt its time depends on the key.

const prime = 2n ** 255n - 19n
const basePoint = Uint8Array.from({ length: keyBytes }, (_, i) => (i === 0 ? 9 : 0))

export const x25519 = {
  getPublicKey: (privateKey: Uint8Array): Uint8Array => multiply(privateKey, basePoint),
  /** Throws for a public key that is a point of low order. */
  getSharedSecret(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array {
    const secret = multiply(privateKey, publicKey)
    if (secret.every((byte) => byte === 0)) throw new Error('the public key has a low order')
    return secret
  },
}

function multiply(privateKey: Uint8Array, point: Uint8Array): Uint8Array {
  const scalar = ((numberOf(privateKey) >> 3n) << 3n) | (1n << 254n)
  const u = numberOf(point)
  let [x2, z2, x3, z3] = [1n, 0n, u, 1n]
  let swapped = 0n
  for (let at = 254n; at >= 0n; at--) {
    const bit = (scalar >> at) & 1n
    if (bit !== swapped) [x2, z2, x3, z3] = [x3, z3, x2, z2]
    swapped = bit
    const [a, b] = [x2 + z2, x2 - z2]
    const [aa, bb] = [(a * a) % prime, (b * b) % prime]
    const [da, cb] = [((x3 - z3) * a) % prime, ((x3 + z3) * b) % prime]
    const e = aa - bb
    x3 = (da + cb) ** 2n % prime
    z3 = (u * ((da - cb) ** 2n % prime)) % prime
    x2 = (aa * bb) % prime
    z2 = (e * (aa + 121665n * e)) % prime
  }
  if (swapped) [x2, z2] = [x3, z3]
  return bytesOf((x2 * inverseOf(z2)) % prime)
}

// By Fermat: the power of `prime` - 2.
function inverseOf(value: bigint): bigint {
  let result = 1n
  for (let [exponent, square] = [prime - 2n, value]; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = (result * square) % prime
    square = (square * square) % prime
  }
  return result
}

// Little-endian, without the last bit.
const numberOf = (bytes: Uint8Array): bigint =>
  bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n) & (2n ** 255n - 1n)

const bytesOf = (value: bigint): Uint8Array => {
  const positive = (value + prime) % prime
  return Uint8Array.from({ length: keyBytes }, (_, i) => Number((positive >> BigInt(8 * i)) & 255n))
}
