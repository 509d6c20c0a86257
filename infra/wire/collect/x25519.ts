import { pow } from '@noble/curves/abstract/modular.js'
import { montgomery } from '@noble/curves/abstract/montgomery.js'

const prime = 2n ** 255n - 19n

/**
 * X25519 by the parameters of RFC 7748, sections 4.1 and 5. The library's own makes tables of the Edwards curve as it
 * loads, which hold a page up and are for many keys; a page makes one.
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
