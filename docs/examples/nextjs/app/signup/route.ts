import { verifyToken } from '../../verify-token.js'

export async function POST(request: Request): Promise<Response> {
  const body = await request.json()
  const session = verified(body?.sealedToken)
  if (!session) return answer(403, 'Please reload the page and try again.')
  const { verdict } = session.decision
  if (verdict === 'bot') return answer(403, 'This looks automated.')
  // An inconclusive session gets a second look, as a mail with a link.
  return answer(200, verdict === 'human' ? 'Welcome.' : 'Please confirm your mail address.')
}

function verified(token: unknown) {
  try {
    return verifyToken(token, process.env.TIDEGATE_SECRET_KEY)
  } catch (error) {
    console.warn(`signup refused: ${error}`)
    return undefined
  }
}

function answer(status: number, message: string): Response {
  return Response.json({ message }, { status })
}
