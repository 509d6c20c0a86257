import { expect, test } from 'vitest'
import { normalizeOrigin } from '../../../services/organizations/checked-input.ts'

test.each([
  ['https://shop.example', 'https://shop.example'],
  ['HTTPS://Shop.Example/', 'https://shop.example'],
  ['https://shop.example:443', 'https://shop.example'],
  ['https://shop.example:8443', 'https://shop.example:8443'],
  ['https://*.shop.example', 'https://*.shop.example'],
  ['https://*.shop.example/', 'https://*.shop.example'],
  ['https://*.Bücher.example', 'https://*.xn--bcher-kva.example'],
  ['https://bücher.example', 'https://xn--bcher-kva.example'],
])('live keys accept %s', (text, stored) => {
  expect(normalizeOrigin(text, 'live')).toBe(stored)
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
])('live keys reject %j', (text) => {
  expect(normalizeOrigin(text, 'live')).toBeUndefined()
})

test('test keys also accept any exact http or https origin', () => {
  expect(normalizeOrigin('http://localhost:3000', 'test')).toBe('http://localhost:3000')
  expect(normalizeOrigin('http://192.0.2.1', 'test')).toBe('http://192.0.2.1')
  expect(normalizeOrigin('https://*.shop.example', 'test')).toBe('https://*.shop.example')
  expect(normalizeOrigin('http://*.shop.example', 'test')).toBeUndefined()
  expect(normalizeOrigin('https://*.shop.example:8443', 'test')).toBeUndefined()
})
