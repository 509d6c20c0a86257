import { expect, test } from 'vitest'
import { chooseKeys } from '../../../services/cli/simulate/client-keys.ts'
import { defaultMix, webOnly } from '../../../services/cli/simulate/generate/plan.ts'

const weights = defaultMix.clients
const stored = {
  publishable_key: 'page',
  secret_key: 'secret',
  ios_publishable_key: 'iPhone',
  android_publishable_key: 'Pixel',
}

test('each client has the key of its own kind', () => {
  expect(chooseKeys({ flags: {}, stored, weights })).toEqual({ web: 'page', ios: 'iPhone', android: 'Pixel' })
})

test('a key that is given has none of another organization beside it', () => {
  const flags = { publishableKey: 'own' }
  expect(() => chooseKeys({ flags, stored, weights })).toThrow(/no key for ios clients: give --ios-key/)
  expect(chooseKeys({ flags, stored, weights: webOnly.clients })).toMatchObject({ web: 'own' })
  expect(chooseKeys({ flags: { ...flags, iosKey: 'a', androidKey: 'b' }, stored, weights })).toEqual({
    web: 'own',
    ios: 'a',
    android: 'b',
  })
})

test('without any key the message names the flag and the way around it', () => {
  const choose = () => chooseKeys({ flags: {}, stored: undefined, weights })
  expect(choose).toThrow('There is no key for web clients: give --publishable-key, or leave them out of')
})
