import { expect, test } from 'vitest'
import { chooseClients } from '../../../services/cli/simulate/client-keys.ts'
import { defaultMix } from '../../../services/cli/simulate/generate/plan.ts'

const weights = defaultMix.clients
const stored = {
  publishable_key: 'page',
  secret_key: 'secret',
  ios_publishable_key: 'iPhone',
  android_publishable_key: 'Pixel',
}

test('each client has the key of its own kind', () => {
  const keys = { web: 'page', ios: 'iPhone', android: 'Pixel' }
  expect(chooseClients({ flags: {}, stored, weights })).toEqual({ keys, weights })
  const flags = { publishableKey: 'a', iosKey: 'b', androidKey: 'c' }
  expect(chooseClients({ flags, stored, weights })).toEqual({
    keys: { web: 'a', ios: 'b', android: 'c' },
    weights,
  })
})

test('a key that is given has none of another organization beside it', () => {
  const chosen = chooseClients({ flags: { publishableKey: 'own' }, stored, weights })
  expect(chosen).toMatchObject({
    keys: { web: 'own', ios: undefined },
    weights: { ...weights, ios: 0, android: 0 },
  })
})

test('a client that was asked for needs a key: the message names the flag and the way around it', () => {
  const asked = { web: 1, ios: 1, android: 0 }
  const choose = () => chooseClients({ flags: { publishableKey: 'own' }, stored, weights: asked })
  expect(choose).toThrow('No key for ios clients: set --ios-key, or leave ios out of --clients.')
  const chooseOfNone = () => chooseClients({ flags: {}, stored: undefined, weights })
  expect(chooseOfNone).toThrow('No key for web clients: set --publishable-key')
})
