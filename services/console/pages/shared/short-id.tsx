import { hrefOf } from './address.ts'
import { CopyButton } from './copy.tsx'
import { shortId } from './format.ts'

/** A shortened id with a button that copies the whole id. */
export function ShortId({ id, isLink = false }: { id: string; isLink?: boolean }) {
  return (
    <span class="short-id">
      {isLink ? (
        <IdLink id={id} />
      ) : (
        <span class="mono" title={id}>
          {shortId(id)}
        </span>
      )}{' '}
      <CopyButton class="plain hint" text={id} title={`Copy ${id}`} />
    </span>
  )
}

/** A shortened id of a session or visitor that links to its page. */
export function IdLink({ id }: { id: string }) {
  const page = id.startsWith('sid_') ? 'sessions' : 'visitors'
  return (
    <a class="mono" href={hrefOf({ page, id })} title={id}>
      {shortId(id)}
    </a>
  )
}
