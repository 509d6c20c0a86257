import { ChangeFailure } from './change.tsx'
import type { ListPages } from './pages.ts'

/** The button that reads the next page of a list, where there is one. */
export function More<Row>({ readOn, failure }: ListPages<Row>) {
  return (
    <>
      <ChangeFailure failure={failure} />
      {readOn && (
        <button type="button" onClick={readOn}>
          Load more
        </button>
      )}
    </>
  )
}
