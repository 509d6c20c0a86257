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

test('each client gets the key of its own type', () => {
  const keys = { web: 'page', ios: 'iPhone', android: 'Pixel' }
  expect(chooseClients({ flags: {}, stored, weights })).toEqual({ keys, weights })
  const flags = { publishableKey: 'a', iosKey: 'b', androidKey: 'c' }
  expect(chooseClients({ flags, stored, weights })).toEqual({
    keys: { web: 'a', ios: 'b', android: 'c' },
    weights,
  })
})

test('keys from flags are not combined with stored keys', () => {
  const chosen = chooseClients({ flags: { publishableKey: 'own' }, stored, weights })
  expect(chosen).toMatchObject({
    keys: { web: 'own', ios: undefined },
    weights: { ...weights, ios: 0, android: 0 },
  })
})

test('a client named by --clients needs a key: the error names the flag', () => {
  const requested = { web: 1, ios: 1, android: 0 }
  const choose = () =>
    chooseClients({ flags: { publishableKey: 'own' }, stored, weights: requested })
  expect(choose).toThrow('No key for ios clients: set --ios-key, or leave ios out of --clients.')
  const chooseWithoutKeys = () => chooseClients({ flags: {}, stored: undefined, weights })
  expect(chooseWithoutKeys).toThrow('No key for web clients: set --publishable-key')
})
