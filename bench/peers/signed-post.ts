import { Pool } from 'undici'
import { webhookBody } from '../../infra/wire/webhooks/events.ts'
import { signatureHeaders } from '../../infra/wire/webhooks/signature.ts'

export interface Delivery {
  id: string
  /** JSON text of the payload's data. */
  data: string
}

/** Returns the body and headers of a Tidegate delivery. */
export function signedRequest({ id, data }: Delivery, secret: string) {
  const now = Date.now()
  const body = webhookBody({ id, type: 'session.result.persisted', created_at: now, data })
  const timestamp = Math.floor(now / 1000)
  const headers = {
    'content-type': 'application/json',
    'user-agent': 'Tidegate-Webhooks/1',
    'Idempotency-Key': id,
    ...signatureHeaders({ eventId: id, body, timestamp, secrets: [secret] }),
  }
  return { headers, body }
}

/** Posts deliveries to RECEIVER_URL, signed with SIGNING_SECRET. */
export function openSender() {
  const { RECEIVER_URL: origin = '', SIGNING_SECRET: secret = '' } = process.env
  const pool = new Pool(origin, { connections: 200 })
  return {
    async deliver(delivery: Delivery): Promise<void> {
      const request = { method: 'POST', path: '/peer', ...signedRequest(delivery, secret) } as const
      const { statusCode, body } = await pool.request(request)
      await body.text()
      if (statusCode !== 200) throw new Error(`the receiver answered ${statusCode}`)
    },
    close: () => pool.close(),
  }
}
