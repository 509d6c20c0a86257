import { CopyButton } from './copy.tsx'
import { shortId } from './format.ts'

/** A shortened id with a button that copies the whole id. */
export function ShortId({ id, href }: { id: string; href?: string }) {
  return (
    <span class="short-id">
      {href ? (
        <IdLink id={id} href={href} />
      ) : (
        <span class="mono" title={id}>
          {shortId(id)}
        </span>
      )}{' '}
      <CopyButton class="plain hint" text={id} title={`Copy ${id}`} />
    </span>
  )
}

/** A shortened id that links to its page. */
export const IdLink = ({ id, href }: { id: string; href: string }) => (
  <a class="mono" href={href} title={id}>
    {shortId(id)}
  </a>
)
