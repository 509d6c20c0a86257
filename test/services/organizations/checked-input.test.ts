import { expect, test } from 'vitest'
import { normalOrigin } from '../../../services/organizations/checked-input.ts'

test.each([
  ['https://shop.example', 'https://shop.example'],
  ['HTTPS://Shop.Example/', 'https://shop.example'],
  ['https://shop.example:443', 'https://shop.example'],
  ['https://shop.example:8443', 'https://shop.example:8443'],
  ['https://*.shop.example', 'https://*.shop.example'],
  ['https://*.shop.example/', 'https://*.shop.example'],
  ['https://*.Bücher.example', 'https://*.xn--bcher-kva.example'],
  ['https://bücher.example', 'https://xn--bcher-kva.example'],
])('live keys take %s', (text, stored) => {
  expect(normalOrigin(text, 'live')).toBe(stored)
})

test.each([
  'http://shop.example',
  'http://localhost:3000',
  'shop.example',
  '*',
  'https://*',
  'https://*.example',
  'https://*.192.0.2.1',
  'https://a.*.example',
  'https://*.shop.example:8443',
  'https://*.shop.example:443',
  'https://shop.example/path',
  'https://shop.example?q',
  'https://user@shop.example',
  'https://shop.example#x',
  'ftp://shop.example',
  'null',
  '',
])('live keys refuse %j', (text) => {
  expect(normalOrigin(text, 'live')).toBeUndefined()
})

test('test keys also take any exact http or https origin', () => {
  expect(normalOrigin('http://localhost:3000', 'test')).toBe('http://localhost:3000')
  expect(normalOrigin('http://192.0.2.1', 'test')).toBe('http://192.0.2.1')
  expect(normalOrigin('https://*.shop.example', 'test')).toBe('https://*.shop.example')
  expect(normalOrigin('http://*.shop.example', 'test')).toBeUndefined()
  expect(normalOrigin('https://*.shop.example:8443', 'test')).toBeUndefined()
})
