import { pow } from '@noble/curves/abstract/modular.js'
import { montgomery } from '@noble/curves/abstract/montgomery.js'

const prime = 2n ** 255n - 19n

/**
 * X25519 with the parameters of RFC 7748, sections 4.1 and 5. The library's own X25519 precomputes tables of the
 * Edwards curve on load, which delays a page and pays off only for many keys; a page needs one.
 */
export const x25519 = montgomery({
  P: prime,
  type: 'x25519',
  adjustScalarBytes(bytes: Uint8Array) {
    bytes[0] = (bytes[0] ?? 0) & 248
    bytes[31] = ((bytes[31] ?? 0) & 127) | 64
    return bytes
  },
  powPminus2: (x) => pow(x, prime - 2n, prime),
})
