import type { Facts } from '../facts.ts'

interface Brand {
  brand: string
  version: string | null
}

/** A made-up brand that browsers add so that nobody relies on the list (GREASE). */
const grease = /not.?.?a.?.?brand/i

/** The most telling brand of the client hints: a product rather than the Chromium under it. */
export function clientBrands({ snapshot, document }: Facts): Brand | null {
  const inPage = snapshot?.navigator.brands ?? []
  const brands = inPage.length > 0 ? inPage.map(brandOf) : parseBrands(document?.client_hints['sec-ch-ua'])
  const real = brands.filter(({ brand }) => brand !== '' && !grease.test(brand))
  return real.find(({ brand }) => brand !== 'Chromium') ?? real[0] ?? null
}

function brandOf({ brand, version }: { brand: string | null; version: string | null }): Brand {
  return { brand: brand ?? '', version }
}

/** The brands of a Sec-CH-UA header (a structured-field list: `"Brand";v="1", ...`). */
function parseBrands(header: string | undefined): Brand[] {
  const found = header?.slice(0, 1000).matchAll(/"([^"]{0,100})";\s*v="([^"]{0,40})"/g) ?? []
  return [...found].map(([, brand = '', version = '']) => ({ brand, version: version || null }))
}

/** A client hint by its header name, without the quotes of structured fields; null when absent. */
export function clientHint({ document }: Facts, name: string): string | null {
  return document?.client_hints[name]?.replaceAll('"', '') || null
}
