import { frameVersion, ivBytes, tagBytes } from './constants.ts'

/** The parts of an encrypted body. */
export interface Frame {
  nonce: Uint8Array
  iv: Uint8Array
  ciphertext: Uint8Array
  tag: Uint8Array
}

// Layout: version 1 | nonce length 1 | nonce | iv 12 | ciphertext | tag 16.
const headerBytes = 2

export function encodeFrame({ nonce, iv, ciphertext, tag }: Frame): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(headerBytes + nonce.length + ivBytes + ciphertext.length + tagBytes)
  frame[0] = frameVersion
  frame[1] = nonce.length
  frame.set(nonce, headerBytes)
  frame.set(iv, headerBytes + nonce.length)
  frame.set(ciphertext, headerBytes + nonce.length + ivBytes)
  frame.set(tag, frame.length - tagBytes)
  return frame
}

/** The parts as views into `bytes`, or what is wrong with it. */
export function decodeFrame<T extends Uint8Array>(bytes: T): Frame | 'unknown_version' | 'too_short' {
  const nonceEnd = headerBytes + (bytes[1] ?? 0)
  const ivEnd = nonceEnd + ivBytes
  if (bytes.length > 0 && bytes[0] !== frameVersion) return 'unknown_version'
  if (bytes.length < ivEnd + tagBytes) return 'too_short'
  return {
    nonce: bytes.subarray(headerBytes, nonceEnd),
    iv: bytes.subarray(nonceEnd, ivEnd),
    ciphertext: bytes.subarray(ivEnd, bytes.length - tagBytes),
    tag: bytes.subarray(bytes.length - tagBytes),
  }
}
