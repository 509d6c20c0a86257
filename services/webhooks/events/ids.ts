import { z } from 'zod'

export const endpointId = z.string().regex(/^we_[0-9a-f]{32}$/)
export const deliveryId = z.string().regex(/^wdlv_[0-9a-f]{32}$/)
export const eventId = z.string().regex(/^evt_[0-9a-hjkmnp-tv-z]{26}$/)
