import type { GateBranding, GateConsentLinks } from '../../../../schemas/events.ts'
import { bounds } from './bounds.ts'
import { checkedText } from './checked-text.ts'
import { checkedUrl } from './checked-url.ts'
import { below, type Member, refused } from './refused.ts'

/** The members that a request may have; null in what is stored = not set. */
export type Given<T> = { [Name in keyof T]?: NonNullable<T[Name]> | undefined }

/** How the service looks; 422 for what is no colour, URL or drawing. */
export function checkedBranding(given: Given<GateBranding>, member: Member): GateBranding {
  const { logo_url, primary_color, secondary_color, ascii_art } = given
  return {
    logo_url: optional(logo_url, below(member, 'logo_url'), checkedUrl),
    primary_color: optional(primary_color, below(member, 'primary_color'), checkedColor),
    secondary_color: optional(secondary_color, below(member, 'secondary_color'), checkedColor),
    ascii_art: optional(ascii_art, below(member, 'ascii_art'), checkedDrawing),
  }
}

/** What whoever approves agrees to; 422 for what is no URL. */
export function checkedConsent(given: Given<GateConsentLinks>, member: Member): GateConsentLinks {
  return {
    terms_url: optional(given.terms_url, below(member, 'terms_url'), checkedUrl),
    privacy_url: optional(given.privacy_url, below(member, 'privacy_url'), checkedUrl),
  }
}

/** The checked text; null where there is none. */
export function optional(
  text: string | null | undefined,
  member: Member,
  checked: (text: string, member: Member) => string,
): string | null {
  return text === undefined || text === null ? null : checked(text, member)
}

function checkedColor(color: string, member: Member): string {
  if (/^#(?:[\da-f]{3,4}|[\da-f]{6}|[\da-f]{8})$/i.test(color)) return color
  throw refused(member, { issue: 'invalid', expected: '#RGB, #RGBA, #RRGGBB or #RRGGBBAA' })
}

function checkedDrawing(drawing: string, member: Member): string {
  const rule = { max: bounds.asciiArt, lines: bounds.asciiArtLines, untrimmed: true }
  return checkedText(drawing, member, rule)
}
