import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { beforeAll, expect } from 'vitest'
import { secretHashOf } from '../../infra/crypto/api-keys.ts'
import { sealToken } from '../../infra/wire/sealed-token.ts'
import vector1 from '../fixtures/sealed-token/vector.v1.json' with { type: 'json' }
import vector2 from '../fixtures/sealed-token/vector.v2.json' with { type: 'json' }
import { codeBlock } from '../support/code-block.ts'
import { needs } from '../support/needs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const { describe, it } = needs('python-cryptography')

describe('the opener in docs/guide/server.md', () => {
  const file = path.join(temporaryFolder('opener'), 'opener.py')
  beforeAll(async () => {
    await writeFile(file, await codeBlock('guide/server.md', 'opener: python'))
  })

  /** The payload; undefined where the opener refuses the token. */
  function opened(token: string, secretKey: string): Promise<unknown> {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const env = { ...process.env, TIDEGATE_SECRET_KEY: secretKey }
    const child = execFile('python3', [file], { env }, (error, stdout) =>
      resolve(error ? undefined : JSON.parse(stdout)),
    )
    child.stdin?.end(token)
    return promise
  }

  it('has at most 30 lines', async () => {
    const code = await codeBlock('guide/server.md', 'opener: python')
    expect(code.split('\n').filter((line) => line.trim() !== '').length).toBeLessThanOrEqual(30)
  })

  it('opens the published vectors with each of their keys', async () => {
    expect(await opened(vector1.token, vector1.secretKey)).toEqual(vector1.payload)
    for (const key of vector2.secretKeys)
      expect(await opened(vector2.token, key)).toEqual(vector2.payload)
  })

  it('opens what the server seals, and nothing for another key, changed or cut', async () => {
    const keys = ['sk_live_one', 'sk_live_two', 'sk_live_three']
    const payload = { text: 'Grüße \u{1F98A}', empty: null }
    const token = sealToken({ payload, secretHashes: keys.map(secretHashOf), random: randomBytes })
    for (const key of keys) expect(await opened(token, key)).toEqual(payload)
    const bytes = Buffer.from(token, 'base64')
    const changed = (at: number) => {
      const copy = Buffer.from(bytes)
      copy[at] = (copy[at] ?? 0) ^ 1
      return copy.toString('base64')
    }
    const bad = [...[0, 2, 4, 18, 20, bytes.length - 1, bytes.length - 91].map(changed)]
    bad.push(bytes.subarray(0, -1).toString('base64'), `${token}AAAA`, '', 'no token')
    for (const one of bad) expect(await opened(one, keys[2] ?? '')).toBeUndefined()
    expect(await opened(token, 'sk_live_four')).toBeUndefined()
  })
})
