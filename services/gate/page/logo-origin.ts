/** Of an origin that a content security policy can name as it is: no wildcard, nothing that ends a directive. */
const plainOrigin = /^https?:\/\/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/

/** Where the logo comes from; undefined when it is at no address that a page may load images from. */
export function logoOrigin(logoUrl: string | null | undefined): string | undefined {
  const origin = logoUrl ? URL.parse(logoUrl)?.origin : undefined
  return origin && plainOrigin.test(origin) ? origin : undefined
}
