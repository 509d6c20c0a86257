import { type VerifiedSession, verifyToken } from '@tidegate/server'

export async function POST(request: Request): Promise<Response> {
  const body = await request.json()
  const session = await verified(body?.sealedToken)
  if (!session) return answer(403, 'Please reload the page and try again.')
  const { verdict } = session.decision
  if (verdict === 'bot') return answer(403, 'This looks automated.')
  // An inconclusive session gets a second look, as a mail with a link.
  return answer(200, verdict === 'human' ? 'Welcome.' : 'Please confirm your mail address.')
}

// More than one process? Then they share this, for example in Redis.
const used = new Set<string>()

async function verified(token: unknown): Promise<VerifiedSession | undefined> {
  const result = await verifyToken(token, {
    secretKey: process.env.TIDEGATE_SECRET_KEY ?? '',
    seen: (id) => used.size === used.add(id).size,
  })
  if (result.ok) return result.session
  console.warn(`signup refused: ${result.message}`)
  return undefined
}

function answer(status: number, message: string): Response {
  return Response.json({ message }, { status })
}
