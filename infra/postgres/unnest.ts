import { arrayParameter, type Element, type ElementType } from './array-parameter.ts'

/** A column to write and where its value comes from. */
export interface Column<Row> {
  name: string
  type: ElementType
  of: (row: Row) => Element
}

export interface Unnested {
  /** Column names, comma-separated. */
  names: string
  /** `unnest($1::text[], ...)`, one parameter a column. */
  source: string
  values: Buffer[]
}

/** Rows as one array parameter a column, so that a batch of any size is one statement. */
export function unnest<Row>(columns: Column<Row>[], rows: Row[], firstParameter = 1): Unnested {
  return {
    names: columns.map(({ name }) => name).join(', '),
    source: `unnest(${columns.map(({ type }, i) => `$${firstParameter + i}::${type}[]`).join(', ')})`,
    values: columns.map(({ type, of }) => arrayParameter(type, rows.map(of))),
  }
}
