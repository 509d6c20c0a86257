export interface ErrorEntry {
  status: number
  /** Whether the same request may succeed later. Default: it may not. */
  retryable?: boolean
  /** Replaces the sentence that follows from `retryable`, where an answer may differ from the table. */
  retry?: string
  message: string
  meaning: string
  remedy: string
  /** The content of the answer's `details`. */
  details?: string
  /** Operations that answer with the code, by id, with their status. Default: any may. */
  operations?: Readonly<Record<string, number>>
}

const requestFields =
  '`fields` names each refused member with `issue` and, where known, `expected`.'

// A code keeps its meaning for ever; new ones may be added.
const entries = {
  'auth.missing_api_key': {
    status: 401,
    message: 'The Authorization header is missing.',
    meaning: 'The request has no `Authorization` header, or an empty one.',
    remedy: 'Send `Authorization: Bearer` and the API key.',
  },
  'auth.invalid_api_key': {
    status: 401,
    message: 'The API key is malformed, unknown, revoked or expired.',
    meaning:
      'The header is not a bearer token, or the key is mistyped, unknown, revoked, or was rotated more than 24 hours ago.',
    remedy:
      'Compare the key with the one that was shown when it was made. A lost key is replaced by rotating it.',
  },
  'auth.secret_key_required': {
    status: 403,
    message: 'This endpoint needs a secret key.',
    meaning: 'A publishable key was sent to an endpoint of the REST API.',
    remedy: 'Call the endpoint from your server with a secret key (`sk_live_` or `sk_test_`).',
  },
  'auth.secret_key_not_allowed': {
    status: 403,
    message: 'Secret keys do not work on collect endpoints; use a publishable key.',
    meaning: 'A secret key was sent to an endpoint of the collect API.',
    remedy:
      'Use a publishable key (`pk_live_` or `pk_test_`) there. If the secret key reached a browser or an app, rotate it.',
  },
  'auth.native_key_not_allowed': {
    status: 403,
    message: 'This native key works only with its own mobile SDK on collect session endpoints.',
    meaning:
      'A key for iOS or Android was used by a browser, by the SDK of the other platform, or on the REST API.',
    remedy: 'Give each platform a key with its own `client_target`.',
  },
  'auth.insufficient_scope': {
    status: 403,
    message: 'The API key lacks the scope {scope}.',
    meaning:
      'The secret key is valid and does not carry the scope that the endpoint needs, or one that it would give to another key. The message names it.',
    remedy:
      'Add the scope to the key, or use a key that has it. A changed key works within 15 seconds.',
  },
  'auth.organization_access_denied': {
    status: 403,
    message: 'The API key belongs to another organization.',
    meaning:
      'The `organizationId` in the path is not the organization that owns the key, or is none at all.',
    remedy:
      'Use the id of the organization that owns the key, or a key of the organization in the path.',
  },
  'auth.live_access_required': {
    status: 403,
    message: 'This applies to live and test; use a live key.',
    meaning:
      'The endpoint changes a setting of both environments, and the key is a test key, or the console session was given `test` only.',
    remedy: 'Use a live key, or log in to the console by a link that includes `live`.',
    operations: { addAgentDirectory: 403, removeAgentDirectory: 403 },
  },
  'auth.organization_inactive': {
    status: 403,
    message: 'The organization is suspended or deleted.',
    meaning: 'The key is valid and its organization may not use the service now.',
    remedy: 'Ask the operator of this server. All keys of the organization are refused alike.',
  },
  'auth.origin_not_allowed': {
    status: 403,
    message: 'The request origin is not allowed for this key.',
    meaning:
      'The publishable key has allowed origins, and the `Origin` header is missing or none of them.',
    remedy:
      'Add the origin of the page to `allowed_origins` of the key. A changed key works within 15 seconds.',
  },
  'console.login_required': {
    status: 401,
    message: 'Nobody is logged in to the console here.',
    meaning:
      'The console session is unknown, was ended, was idle for 12 hours or is 7 days old, its key or organization may no longer be used, or a login link is not valid, was already used or has expired. The message says which.',
    remedy: 'Log in by a new link of `tidegate console login`, or with a secret key.',
    operations: {},
  },
  'console.refused': {
    status: 403,
    message: 'The console does not take this request.',
    meaning:
      'The request came over plain HTTP from elsewhere than this machine, from another origin or without the token of the session, or is for an environment that the session was not given. The message says which.',
    remedy: 'Open the console at its own address, over HTTPS or on loopback, and log in again.',
    operations: {},
  },
  'request.malformed': {
    status: 400,
    message: 'The request is not valid HTTP, or its URL cannot be read.',
    meaning:
      'The HTTP parser refused the request, its `Host` header is missing, or its URL has a broken escape.',
    remedy: 'Let an HTTP library write the request, and percent-encode what goes into the URL.',
  },
  'request.malformed_body': {
    status: 400,
    message: 'The request body is not valid JSON.',
    meaning:
      'The body is empty where one is needed, is not JSON in UTF-8, or is shorter or longer than `Content-Length` says.',
    remedy: 'Send valid JSON in UTF-8.',
  },
  'request.not_found': {
    status: 404,
    message: 'Nothing was found here.',
    meaning:
      'The path does not exist, or no such resource does in this organization and environment. Live keys do not see test data, and test keys no live data.',
    remedy:
      'Check the path, the id, and whether the key is of the environment that the resource was made in. A visitor that was merged is found under the id in `merged_into`.',
    details:
      '`merged_into` is the id of the visitor that the one in the path was merged into, while there is one.',
  },
  'request.method_not_allowed': {
    status: 405,
    message: 'This path takes {methods} only.',
    meaning:
      'The path exists and does not take the method. The header `Allow` lists those that it takes.',
    remedy: 'Use one of the methods in `Allow`.',
  },
  'request.timeout': {
    status: 408,
    retryable: true,
    message: 'The request did not arrive completely in time.',
    meaning: 'The head and the body of the request took longer than 30 seconds to arrive.',
    remedy: 'Send it again on a new connection.',
  },
  'request.conflict': {
    status: 409,
    retry: 'the same request fails again, unless `retryable` is true',
    message: 'The request conflicts with what exists.',
    meaning:
      'A slug is taken, a limit on the number of things is reached, something is not in the state that the request needs (a key that is being rotated, a disabled webhook endpoint), or another request with the same `Idempotency-Key` is still being answered. The message says which.',
    remedy:
      'Change what is in conflict. Where `retryable` is true, the first request is still being answered: send the same request again after `Retry-After`.',
    details:
      '`fields` names the member in conflict. `next_action` is `contact_support` where only the operator can help, and `retry` while the first request is being answered; `header_name` is then `Idempotency-Key`.',
  },
  'request.payload_too_large': {
    status: 413,
    message: 'The request body is too large.',
    meaning:
      'A JSON body may have 256 KiB, observations 128 KiB deflated, and a network check 4 KiB.',
    remedy: 'Send less at once.',
  },
  'request.invalid_content_type': {
    status: 415,
    message: 'The Content-Type must be {expected}.',
    meaning:
      'The body has another content type than the endpoint takes, or none, or it is compressed: it has a `Content-Encoding` other than `identity`.',
    remedy: 'Set `Content-Type` to what `details.fields` expects, and send the body as it is.',
    details:
      '`fields` names `Content-Type` or `Content-Encoding` and what is expected; `header_name` is the one that it names.',
  },
  'request.validation_failed': {
    status: 422,
    message: '{problem}',
    meaning:
      'A value in the path, the query, a header or the body is missing, unknown, or not of the form it must have.',
    remedy: 'Correct every member that `details.fields` names.',
    details: `${requestFields} \`allowed_values\` lists them where they are few; \`parameter_set\` names the kind of body; \`header_name\` the header.`,
  },
  'request.headers_too_large': {
    status: 431,
    message: 'The request headers or its URL are too large.',
    meaning: 'The request line and the headers together are larger than 16 KiB.',
    remedy: 'Send fewer or shorter headers, or a shorter URL.',
  },
  'session.sequence_mismatch': {
    status: 409,
    message: 'The batch sequence number is not the expected one.',
    meaning:
      'Another body was accepted under this number before, or `X-Batch-Seq` is not the number in the nonce.',
    remedy: 'Start a new session. The SDK does this by itself.',
    details:
      '`fields` names `X-Batch-Seq` with the expected and the received number; `next_action` is `new_session`.',
  },
  'session.invalid_or_expired': {
    status: 410,
    message: 'The collect session is invalid or has expired; start a new one.',
    meaning:
      'The session or document is unknown, older than 24 hours, or of another key or organization.',
    remedy: 'Open a new session. The SDK does this by itself.',
    details: '`next_action` is `new_session`.',
  },
  'transport.session_reset_required': {
    status: 409,
    retryable: true,
    message: 'The body could not be decrypted; start a new session.',
    meaning: 'The body was not encrypted for this document, or was changed on its way.',
    remedy: 'Open a new session and send what is left there. The SDK does this by itself.',
    details: '`next_action` is `new_session`.',
  },
  'gate.session_not_found': {
    status: 404,
    message: 'No Gate session has this id.',
    meaning: 'The id is mistyped, or of no signup or login of this server.',
    remedy: 'Use the `id` that the creation of the session answered with, or create a new one.',
    operations: {
      pollGateSession: 404,
      getGateSessionConsent: 404,
      approveGateSession: 404,
      cancelGateSession: 404,
      acknowledgeGateSessionDelivery: 404,
      claimGateSession: 404,
      eraseGateSession: 404,
    },
  },
  'gate.session_expired': {
    status: 410,
    message: 'The Gate session has expired.',
    meaning:
      'Nobody decided within the 15 minutes of the session. A login code answers so, too, when it is unknown or its 5 minutes are over.',
    remedy: 'Start the signup or login again.',
    operations: {
      pollGateSession: 410,
      getGateSessionConsent: 410,
      approveGateSession: 410,
      cancelGateSession: 410,
      acknowledgeGateSessionDelivery: 410,
      claimGateSession: 410,
      consumeGateLoginSessionCode: 410,
    },
  },
  'gate.session_already_resolved': {
    status: 409,
    message: 'The Gate session was already approved, rejected or expired.',
    meaning:
      'A decision has been made, and there is no second one. A login code that was used before answers so with status 410.',
    remedy: 'Poll the session to learn how it ended; start again where that is what you want.',
    operations: {
      getGateSessionConsent: 409,
      approveGateSession: 409,
      cancelGateSession: 409,
      claimGateSession: 409,
      consumeGateLoginSessionCode: 410,
    },
  },
  'gate.approval_in_progress': {
    status: 409,
    retryable: true,
    message: 'The signup is being finalized; ask again after Retry-After.',
    meaning:
      'A person approved the signup, and the service has not answered with the credentials yet.',
    remedy:
      'Send the same request again after the seconds in `Retry-After`. It does not count as another attempt.',
    operations: { approveGateSession: 409, cancelGateSession: 409 },
  },
  'gate.bot_detected': {
    status: 403,
    message: 'The consent page was operated by automation.',
    meaning: 'The session of the consent page was scored as a bot. The Gate session stays pending.',
    remedy: 'A person has to approve, in a browser of their own. There are three attempts in all.',
    operations: { approveGateSession: 403 },
  },
  'gate.approve_token_invalid': {
    status: 403,
    message: 'The approve token is missing, wrong or was replaced.',
    meaning:
      'The request has no `approve_token`, another session has it, or the consent data was fetched again since: only the newest token counts.',
    remedy: 'Fetch the consent data again and send the token in it.',
    operations: { approveGateSession: 403 },
  },
  'gate.svc_proof_required': {
    status: 422,
    message: 'The sealed scoring proof is missing.',
    meaning: 'The request has no `sealed_token`.',
    remedy: 'Approve on the consent page, which makes the proof from its own session.',
    operations: { approveGateSession: 422 },
  },
  'gate.svc_proof_invalid': {
    status: 403,
    message: 'The sealed scoring proof is invalid or expired.',
    meaning:
      'The token was not sealed by this server for its consent page, is older than two minutes, or comes from the page of another Gate session.',
    remedy: 'Reload the consent page and approve there.',
    operations: { approveGateSession: 403 },
  },
  'gate.delivery_consumed': {
    status: 410,
    message: 'The credentials were delivered already.',
    meaning:
      'The delivery was acknowledged, or nobody acknowledged it within 24 hours, or its key is gone, because the database was restored from a backup. It is gone for good.',
    remedy: 'Sign up again where the credentials are lost.',
    operations: { pollGateSession: 410, acknowledgeGateSessionDelivery: 410 },
  },
  'gate.delivery_ack_invalid': {
    status: 403,
    message: 'The ack token is missing or wrong.',
    meaning: 'The request has no `ack_token`, or it is not the one of this delivery.',
    remedy: 'Decrypt the envelope `gate` of the delivery and send the `ack_token` in it.',
    operations: { acknowledgeGateSessionDelivery: 403 },
  },
  'gate.claim_code_invalid': {
    status: 403,
    message: 'The code is not the one that the consent page shows.',
    meaning:
      'The code is wrong, or nobody has approved yet. The fifth wrong code rejects the signup.',
    remedy: 'Ask the person for the six digits that the consent page shows after approving.',
    operations: { claimGateSession: 403 },
  },
  'gate.rate_limit': {
    status: 429,
    retryable: true,
    message: 'Too many requests; wait for Retry-After.',
    meaning:
      'The limit of this Gate endpoint is used up, for the address or token that the request came with.',
    remedy: 'Wait as many seconds as `Retry-After` says.',
    operations: {
      createGateSession: 429,
      pollGateSession: 429,
      getGateSessionConsent: 429,
      approveGateSession: 429,
      cancelGateSession: 429,
      acknowledgeGateSessionDelivery: 429,
      claimGateSession: 429,
      eraseGateSession: 429,
      createGateLoginSession: 429,
      verifyGateAgentToken: 429,
      revokeGateAgentToken: 429,
      consumeGateLoginSessionCode: 429,
      verifyManagedGateServiceDomain: 429,
    },
  },
  'gate.validation_failed': {
    status: 422,
    message: '{problem}',
    meaning: 'The body of a request to Gate is not what the endpoint takes.',
    remedy: 'Correct the members that `details.fields` names.',
    details: requestFields,
    operations: {
      createManagedGateService: 422,
      updateManagedGateService: 422,
      disableManagedGateService: 422,
      verifyManagedGateServiceDomain: 422,
      createGateSession: 422,
      approveGateSession: 422,
      acknowledgeGateSessionDelivery: 422,
      claimGateSession: 422,
      eraseGateSession: 422,
      createGateLoginSession: 422,
      verifyGateAgentToken: 422,
      revokeGateAgentToken: 422,
      consumeGateLoginSessionCode: 422,
    },
  },
  'rate_limit.exceeded': {
    status: 429,
    retryable: true,
    message: 'Too many requests; wait for Retry-After.',
    meaning:
      'The bucket that all keys of one type share in an organization is empty, a webhook endpoint was tested ten times within a minute, or one source presents unknown keys, or uses the key of the consent page, too fast; these two have no `X-RateLimit-*` headers.',
    remedy:
      'Wait as many seconds as `Retry-After` says. A refused request costs as much as an admitted one, so trying earlier lengthens the wait.',
  },
  'internal.error': {
    status: 500,
    retryable: true,
    message: 'Something failed on our side.',
    meaning:
      'The server met something that it did not expect. It may have done what was asked, or not.',
    remedy:
      'Send the request again, with the same `Idempotency-Key` where it had one. Report the `request_id` if it stays.',
  },
  'service.unavailable': {
    status: 503,
    retryable: true,
    retry: 'the same request may succeed later, unless `retryable` is false',
    message: 'The service cannot take this request now; retry after Retry-After.',
    meaning:
      'The log, the database or another part that the request needs does not answer, has too much to do, or the server is stopping. Where `retryable` is false, the server was set up without data that the operation needs.',
    remedy:
      'Send the same request again after the seconds in `Retry-After`. Where `retryable` is false, ask the operator of this server.',
    details: '`next_action` is `contact_support` where only the operator can help.',
  },
} as const satisfies Record<string, ErrorEntry>

export type ErrorCode = keyof typeof entries

export const errorTable: Readonly<Record<ErrorCode, ErrorEntry>> = entries

export const errorCodes = Object.keys(entries).filter((code): code is ErrorCode => code in entries)

type PlacesIn<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | PlacesIn<Rest>
  : never

export type Places<Code extends ErrorCode> = PlacesIn<(typeof entries)[Code]['message']>

/** Codes whose message has no places. */
export type PlainCode = {
  [Code in ErrorCode]: [Places<Code>] extends [never] ? Code : never
}[ErrorCode]

export function messageOf<Code extends ErrorCode>(
  code: Code,
  values: Readonly<Record<Places<Code>, string>>,
): string {
  const filled = new Map<string, string>(Object.entries(values))
  return errorTable[code].message.replace(
    /\{(\w+)\}/g,
    (place, name: string) => filled.get(name) ?? place,
  )
}
